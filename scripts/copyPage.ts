// Copies the web page of `effect ui` and the scripts of exported workers, which tsc does not compile, from src/ into
// dist/, and bundles the web worker of the page "Play". `npm run build` runs it.
import { cpSync, writeFileSync } from "node:fs"
import { Effect } from "effect"
import { bundle, bundleName } from "../src/dashboard/play/bundle-node.ts"

const page = new URL("../src/dashboard/page/", import.meta.url)
cpSync(page, new URL("../dist/dashboard/page/", import.meta.url), { recursive: true })

for (const script of ["policy.js", "worker.js"]) {
  const path = `export/worker/${script}`
  cpSync(new URL(`../src/${path}`, import.meta.url), new URL(`../dist/${path}`, import.meta.url))
}

writeFileSync(new URL(`../dist/dashboard/play/${bundleName}`, import.meta.url), await Effect.runPromise(bundle))
