"""Records of backward calls: arguments, forecast and outcome."""
