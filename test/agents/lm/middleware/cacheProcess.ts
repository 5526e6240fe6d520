// Records the answers to a hundred requests, forwards or backwards: `node cacheProcess.ts DIRECTORY NAME forwards`.
// Its model never says what another process's says. Prints the answers in the requests' order.
import { Effect } from "effect"
import { cached } from "../../../../src/agents/lm/middleware/cached.ts"
import { disk } from "../../../run/store/disk.ts"
import { answering, request } from "../support.ts"

const [directory, name, order] = process.argv.slice(2)

const program = Effect.gen(function* () {
  const { lm } = answering((nth) => `${name} ${nth}`)
  const record = (yield* cached({ mode: "record", directory }))(lm)
  const numbers = Array.from({ length: 100 }, (_, index) => index)
  const answers = yield* Effect.forEach(
    order === "forwards" ? numbers : numbers.toReversed(),
    (number) => record.complete(request(`question ${number}`, { seed: number })),
    { concurrency: 5 },
  )
  const said = answers.map(({ content }) => content)
  return order === "forwards" ? said : said.toReversed()
})

console.log(JSON.stringify(await Effect.runPromise(Effect.provide(program, disk))))
