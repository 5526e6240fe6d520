// Copies the web page of `effect ui`, which tsc does not compile, from src/ into dist/, and bundles the web worker of its
// page "Play". `npm run build` runs it.
import { cpSync, writeFileSync } from "node:fs"
import { Effect } from "effect"
import { bundle, bundleName } from "../src/dashboard/play/bundle-node.ts"

const page = new URL("../src/dashboard/page/", import.meta.url)
cpSync(page, new URL("../dist/dashboard/page/", import.meta.url), { recursive: true })

writeFileSync(new URL(`../dist/dashboard/play/${bundleName}`, import.meta.url), await Effect.runPromise(bundle))
