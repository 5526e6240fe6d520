/** Runs one benchmark, named by its file, in this process, and sends the result to the parent process. */
import { context, type Bench } from "./Bench.ts"
import { kernelsVariable, withKernels } from "./kernels.ts"

const [, , file, name] = process.argv
const { default: exported }: { readonly default: Bench | ReadonlyArray<Bench> } = await import(file)
for (const bench of [exported].flat()) {
  if (bench.name !== name) continue
  const run = () => bench.run(context)
  process.send?.(await (process.env[kernelsVariable] === undefined ? run() : withKernels(run)))
}
process.disconnect?.()
