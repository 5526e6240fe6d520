import { enableCompileCache } from "node:module"
import { fileURLToPath } from "node:url"

// Node keeps what it compiles within the checkout: the threads and processes that tests start, many hundreds, load the library
// in half the time. A variable that the user has set leads elsewhere.
process.env.NODE_COMPILE_CACHE ||= fileURLToPath(new URL("../../node_modules/.cache/compiled", import.meta.url))
enableCompileCache(process.env.NODE_COMPILE_CACHE)
