// What a notebook loads: the widget's two files, compressed. Printed at the end of every build.
import { existsSync, readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";

const LIMIT = 60_000;
const files = ["widget.js", "widget.css"].map((name) => new URL(`../graphwidget/static/${name}`, import.meta.url));
const sizes = files.map((file) => (existsSync(file) ? gzipSync(readFileSync(file), { level: 9 }).length : 0));
const total = sizes.reduce((sum, size) => sum + size, 0);
const verdict = total <= LIMIT ? "within" : `${total - LIMIT} bytes over`;
console.log(`widget.js ${sizes[0]} + widget.css ${sizes[1]} = ${total} bytes gzip, ${verdict} ${LIMIT}`);
