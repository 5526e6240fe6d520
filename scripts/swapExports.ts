// Rewrites `exports` in package.json: to dist/ before npm packs the package (`node scripts/swapExports.ts dist`), and
// back to src/ afterwards (`node scripts/swapExports.ts src`). npm runs it as `prepack` and `postpack`.
import { readFileSync, writeFileSync } from "node:fs"

const path = new URL("../package.json", import.meta.url)
const text = readFileSync(path, "utf8")

/** An entry of the package: the bundle for Node, and single modules for bundlers and other engines. */
const packed = (name: string): string => {
  const bundled = name.replaceAll("/", ".")
  return `{ "types": "./dist/${name}.d.ts", "node": "./dist/bundle/${bundled}.js", "default": "./dist/${name}.js" }`
}

const swapped =
  process.argv[2] === "dist"
    ? text.replace(/"\.\/src\/([\w/]+)\.ts"/g, (_, name: string) => packed(name))
    : text.replace(/\{[^{}]*"default": "\.\/dist\/([\w/]+)\.js" \}/g, '"./src/$1.ts"')
writeFileSync(path, swapped)
