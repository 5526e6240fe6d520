// Before packing: `exports` of what is built; after: of the sources again.
//   node scripts/swapExports.ts dist
//   node scripts/swapExports.ts src
import { readFileSync, writeFileSync } from "node:fs"

const path = new URL("../package.json", import.meta.url)
const text = readFileSync(path, "utf8")
const swapped =
  process.argv[2] === "dist"
    ? text.replace(/"\.\/src\/(\w+)\.ts"/g, '"./dist/$1.js"')
    : text.replace(/"\.\/dist\/(\w+)\.js"/g, '"./src/$1.ts"')
writeFileSync(path, swapped)
