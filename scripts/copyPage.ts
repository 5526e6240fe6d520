// The page of `effect ui` is served as it is written, so building it is copying it beside what is compiled.
import { cpSync } from "node:fs"

const from = new URL("../src/dashboard/page/", import.meta.url)
cpSync(from, new URL("../dist/dashboard/page/", import.meta.url), { recursive: true })
