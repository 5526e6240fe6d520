/** Runs one benchmark, named by its file, in this process, and sends what it measured to the process that asked. */
import { context, type Bench } from "./Bench.ts"

const file = process.argv[2]
const { default: bench }: { readonly default: Bench } = await import(file)
process.send?.(await bench.run(context))
process.disconnect?.()
