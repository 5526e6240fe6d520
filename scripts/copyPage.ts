// Copies what tsc does not compile from src/ into dist/: the web page of `effect ui`, the scripts of exported workers, and the
// programs of Python's envs. Also bundles the web worker of the page "Play". `npm run build` runs it.
import { cpSync, writeFileSync } from "node:fs"
import { Effect } from "effect"
import { bundle, bundleName } from "../src/command/ui/play/bundle-node.ts"

const page = new URL("../src/command/ui/page/", import.meta.url)
cpSync(page, new URL("../dist/command/ui/page/", import.meta.url), { recursive: true })

const scripts = [
  "rl/env/foreign/effect_rl_env.py",
  "rl/env/foreign/effect_rl_pettingzoo.py",
  "rl/env/foreign/effect_rl_wrappers.py",
  "agents/task/foreign/effect_rl_alfworld.py",
  "command/ui/play/mujocoLicence.txt",
]
for (const path of [...scripts, "rl/export/worker/policy.js", "rl/export/worker/worker.js"]) {
  cpSync(new URL(`../src/${path}`, import.meta.url), new URL(`../dist/${path}`, import.meta.url))
}

writeFileSync(new URL(`../dist/command/ui/play/${bundleName}`, import.meta.url), await Effect.runPromise(bundle))
