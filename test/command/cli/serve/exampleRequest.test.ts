import { mkdirSync } from "node:fs"
import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, Schema } from "effect"
import { assert, describe, it } from "vitest"
import { exampleRequest } from "../../../../src/command/cli/serve/exampleRequest.ts"
import { MultiRunConfig } from "../../../../src/trainer/config/MultiRunConfig.ts"
import { withFolder, write } from "../effect.ts"

const settings = Schema.decodeSync(MultiRunConfig)({
  kind: "multirun",
  model: { type: "scratch", tokenizer: { alphabet: "ab" } },
  runs: {},
})

describe("the example that effect serve prints for a trainer", () => {
  it("asks a run that is served what its agent asks in its tasks", () =>
    withFolder(async (directory) => {
      for (const run of ["run_a", "run_letters"]) mkdirSync(join(directory, run, "configs"), { recursive: true })
      write(directory, "run_a/configs/orch.yaml", "train_dataset: { dataset_path: none.jsonl }\n")
      write(
        directory,
        "run_letters/configs/orch.yaml",
        "train_dataset: { type: reverse_text }\nvalidation_dataset: { type: reverse_text, seed: 2 }\nsampling: { max_tokens: 9 }\n",
      )
      const example = (models: ReadonlyArray<string>) =>
        Effect.runPromise(
          exampleRequest({ directory, settings, run: null }, models).pipe(
            Effect.scoped,
            Effect.provide(NodeServices.layer),
          ),
        )
      const request = await example(["base", "run_a", "run_letters"])
      if (request === undefined) assert.fail("no run has an example")
      assert.strictEqual(request.model, "run_letters")
      assert.strictEqual(request.max_tokens, 9)
      assert.lengthOf(request.messages, 1)
      assert.match(JSON.stringify(request.messages[0]), /^{"role":"user","content":"Q: reverse [a-z]+"}$/)
      assert.isUndefined(await example(["base", "run_a"]))
    }))
})
