import { fileURLToPath } from "node:url"
import { NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Effect, FileSystem } from "effect"
import { parse } from "yaml"
import { mostBytes, readText } from "../../../src/base/files/files.ts"
import { serve } from "../lm/server.ts"
import { mailModels } from "./mailModels.ts"
import { learned } from "./support.ts"

const folder = fileURLToPath(new URL("../../../examples/agents", import.meta.url))

/** The example with a smaller budget, and models at this address. */
const configFor = (written: string, url: string, lm: object) => {
  const { agent, dataset, test_dataset, learner, ...rest } = parse(written)
  const at = (config: object, base_url: string) => ({ ...config, ...lm, base_url, starting_delay: 0.001 })
  const inFolder = ({ dataset_path, ...more }: { readonly dataset_path: string }) => ({
    ...more,
    dataset_path: `${folder}/${dataset_path}`,
  })
  return {
    ...rest,
    validation_share: 0.2,
    agent: { ...agent, lm_config: at(agent.lm_config, `${url}/v1`) },
    dataset: inFolder(dataset),
    test_dataset: { ...inFolder(test_dataset), max_samples: 20 },
    learner: { ...learner, reflection_lm_config: at(learner.reflection_lm_config, url), max_metric_calls: 260 },
  }
}

describe("the example that sorts mails", () => {
  it.live("finds a better prompt through both protocols, and is repeated from the recorded answers alone", () =>
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const cache_dir = yield* fs.makeTempDirectoryScoped()
      const written = yield* fs.readFileString(`${folder}/mails.yaml`)
      const { url, recorded } = yield* Effect.scoped(
        Effect.gen(function* () {
          const server = yield* serve(mailModels)
          const { result } = yield* learned(configFor(written, server.url, { cache: "record", cache_dir }))
          // Both models were asked, each by its own protocol, and some tries failed.
          for (const path of ["/v1/chat/completions", "/v1/messages"])
            assert.isAbove(server.asked.filter((asked) => asked.path === path).length, 3)
          assert.isTrue(server.asked.some(({ fault }) => fault.kind === "status"))
          return { url: server.url, recorded: result }
        }),
      )
      const { seed, best, difference } = recorded.testScores ?? assert.fail("there are no scores of test tasks")
      assert.isAbove(best.mean, seed.mean)
      assert.isAbove(difference.low, 0)
      // The model declines to answer some mails. That is recorded, too: a replay would stop at a missing answer.
      const files = yield* fs.readDirectory(cache_dir, { recursive: true })
      const texts = yield* Effect.forEach(
        files.filter((file) => file.endsWith(".json")),
        (file) => readText(`${cache_dir}/${file}`, mostBytes.text),
      )
      assert.isTrue(texts.some((text) => text.includes('"refused"')))
      // The server is gone.
      const { result: replayed } = yield* learned(configFor(written, url, { cache: "replay", cache_dir }))
      assert.strictEqual(replayed.digest, recorded.digest)
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)),
  )
})
