// Copies the web page of `effect ui`, which tsc does not compile, from src/ into dist/. `npm run build` runs it.
import { cpSync } from "node:fs"

const page = new URL("../src/dashboard/page/", import.meta.url)
cpSync(page, new URL("../dist/dashboard/page/", import.meta.url), { recursive: true })
