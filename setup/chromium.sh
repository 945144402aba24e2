#!/bin/sh
# The browser tests need a Chromium. Found: good. Not found: install Debian's, or say what to do.
set -eu

found() {
    for name in "${CHROMIUM:-}" chromium chromium-browser google-chrome google-chrome-stable \
        "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome" \
        "/Applications/Chromium.app/Contents/MacOS/Chromium"; do
        [ -n "$name" ] && command -v "$name" >/dev/null 2>&1 && return 0
    done
    return 1
}

found && exit 0
if command -v apt-get >/dev/null 2>&1; then
    as_root=""
    [ "$(id -u)" = 0 ] || as_root="sudo -n"
    echo "installing Debian's chromium for the browser tests"
    if $as_root apt-get update -qq && $as_root apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core >/dev/null; then
        found && exit 0
    fi
fi
echo "The browser tests need Chromium or Google Chrome. Install one (Debian: apt install chromium; macOS: Google Chrome)," >&2
echo "or set CHROMIUM to the path of one, and run make test again." >&2
exit 1
