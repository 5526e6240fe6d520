// Before packing: `exports` of what is built; after: of the sources again. (npm doesn't look at publishConfig.exports.)
import { readFileSync, writeFileSync } from "node:fs"

const path = new URL("../package.json", import.meta.url)
const manifest = JSON.parse(readFileSync(path, "utf8"))
const { exports, publishConfig } = manifest
manifest.exports = publishConfig.exports
manifest.publishConfig.exports = exports
writeFileSync(path, `${JSON.stringify(manifest, null, 2)}\n`)
