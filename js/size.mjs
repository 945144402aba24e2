// What a notebook loads: the widget's two files, compressed. Printed, and checked, at the end of every build.
import { readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";

/** Bytes that no build may exceed: an alarm, no target. */
const LIMIT = 200_000;

export function checkSize() {
  const sizes = ["widget.js", "widget.css"].map((name) => {
    const file = readFileSync(new URL(`../graphwidget/static/${name}`, import.meta.url));
    return gzipSync(file, { level: 9 }).length;
  });
  const total = sizes[0] + sizes[1];
  console.log(`widget.js ${sizes[0]} + widget.css ${sizes[1]} = ${total} bytes gzip, at most ${LIMIT}`);
  if (total > LIMIT) {
    console.error(`More than ${LIMIT}: take something out first.`);
    process.exitCode = 1;
  }
}
