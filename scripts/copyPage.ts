// The page of `effect ui` is not compiled: building it copies its files into dist/.
import { cpSync } from "node:fs"

const from = new URL("../src/dashboard/page/", import.meta.url)
cpSync(from, new URL("../dist/dashboard/page/", import.meta.url), { recursive: true })
