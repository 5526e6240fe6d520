// Rewrites `exports` in package.json: to dist/ before npm packs the package (`node scripts/swapExports.ts dist`), and
// back to src/ afterwards (`node scripts/swapExports.ts src`). npm runs it as `prepack` and `postpack`.
import { readFileSync, writeFileSync } from "node:fs"

const path = new URL("../package.json", import.meta.url)
const text = readFileSync(path, "utf8")
const swapped =
  process.argv[2] === "dist"
    ? text.replace(/"\.\/src\/(\w+)\.ts"/g, '"./dist/$1.js"')
    : text.replace(/"\.\/dist\/(\w+)\.js"/g, '"./src/$1.ts"')
writeFileSync(path, swapped)
