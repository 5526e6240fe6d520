// Copies what tsc does not compile from src/ into dist/: the web page of `effect ui`, the scripts of exported workers, and the
// program of Gymnasium's envs. Also bundles the web worker of the page "Play". `npm run build` runs it.
import { cpSync, writeFileSync } from "node:fs"
import { Effect } from "effect"
import { bundle, bundleName } from "../src/dashboard/play/bundle-node.ts"

const page = new URL("../src/dashboard/page/", import.meta.url)
cpSync(page, new URL("../dist/dashboard/page/", import.meta.url), { recursive: true })

const envs = "env/foreign/effect_rl_env.py"
cpSync(new URL(`../src/${envs}`, import.meta.url), new URL(`../dist/${envs}`, import.meta.url))

for (const script of ["policy.js", "worker.js"]) {
  const path = `export/worker/${script}`
  cpSync(new URL(`../src/${path}`, import.meta.url), new URL(`../dist/${path}`, import.meta.url))
}

writeFileSync(new URL(`../dist/dashboard/play/${bundleName}`, import.meta.url), await Effect.runPromise(bundle))
