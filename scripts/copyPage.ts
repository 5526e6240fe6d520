// Copies the files of the web page of `effect ui` from src/ into dist/, because tsc does not compile them. `npm run
// build` runs this script.
import { cpSync } from "node:fs"

const page = new URL("../src/dashboard/page/", import.meta.url)
cpSync(page, new URL("../dist/dashboard/page/", import.meta.url), { recursive: true })
