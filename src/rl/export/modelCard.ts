/** Makes the model card of a trained policy, the README of its repository, as the Hugging Face hub reads it. */
import { stringify } from "yaml"
import { fenced, markdownCode, markdownText } from "../../base/text/text.ts"
import { writerOf } from "../env/internal/values.ts"
import { display, sample, type Space, sizeOf, type SpaceValue } from "../env/Space.ts"
import * as Rng from "../../base/rng/Rng.ts"
import type { PolicyAbout } from "../policy/about.ts"

interface ModelCard {
  /** The name of the model, such as ppo-CartPole-v1. */
  readonly name: string
  readonly about: PolicyAbout
  /** The shapes of the policy's inputs by their names. */
  readonly inputs: Readonly<Record<string, ReadonlyArray<number>>>
  /** The newest validation, if there was one. */
  readonly validation:
    | { readonly meanReturn: number; readonly stdReturn: number; readonly episodes: number }
    | undefined
  /** The config of the run, as text. */
  readonly config: string
  /** The names of the files with the policy, its curve and its episode, if there are such files. */
  readonly files: { readonly policy: string; readonly curve?: string; readonly replay?: string }
}

/** Returns an observation for the example code: zeros within a box, otherwise any value of the space. */
const exampleOf = (space: Space): SpaceValue =>
  space._tag === "Box"
    ? Array.from(space.low, (low, at) => Math.min(Math.max(0, low), space.high[at]))
    : sample(space, Rng.stream(1, "card"))

/** The largest number of elements that the example code writes as a list. */
const mostNumbers = 16

/** Returns Python code that runs the policy with ONNX Runtime, without this library. */
const onnxCode = ({ about: { observationSpace, hasActionMask }, inputs, files }: ModelCard): string => {
  const row = new Array<number>(inputs.observations.at(-1) ?? 0).fill(0)
  writerOf(observationSpace)(exampleOf(observationSpace), row, 0)
  const numbers = row.length > mostNumbers ? `zeros((1, ${row.length})` : `array([${JSON.stringify(row)}]`
  const isRecurrent = inputs.memory !== undefined
  return [
    "```py",
    "import numpy as np",
    "import onnxruntime  # pip install onnxruntime",
    "",
    `policy = onnxruntime.InferenceSession("${files.policy}")`,
    `observations = np.${numbers}, np.float32)`,
    ...(hasActionMask
      ? [`observations[0, ${sizeOf(observationSpace)}:] = 1  # the mask: 1 for each choice that is allowed`]
      : []),
    ...(isRecurrent
      ? [
          `memory = np.zeros((${inputs.memory.join(", ")}), np.float32)  # zeros when an episode begins`,
          `actions, memory = policy.run(["actions", "nextMemory"], {"observations": observations, "memory": memory})`,
        ]
      : [`(actions,) = policy.run(["actions"], {"observations": observations})`]),
    "print(actions)",
    "```",
  ].join("\n")
}

/** Returns the text of the card. */
export const modelCard = (card: ModelCard): string => {
  const { name, about, validation, config, files } = card
  const { env, algorithm, step, observationSpace, actionSpace, hasActionMask } = about
  const result = validation && `${validation.meanReturn.toFixed(2)} +/- ${validation.stdReturn.toFixed(2)}`
  const header = {
    library_name: "effect-rl",
    pipeline_tag: "reinforcement-learning",
    tags: [env, algorithm, "reinforcement-learning", "deep-reinforcement-learning", "effect-rl", "onnx"],
    ...(result !== undefined && {
      "model-index": [
        {
          name,
          results: [
            {
              task: { type: "reinforcement-learning", name: "reinforcement-learning" },
              dataset: { name: env, type: env },
              metrics: [{ type: "mean_reward", value: result, name: "mean_reward", verified: false }],
            },
          ],
        },
      ],
    }),
  }
  const observation = JSON.stringify(exampleOf(observationSpace))
  return [
    `---\n${stringify(header)}---`,
    `# ${markdownText(name)}`,
    `A policy for **${markdownText(env)}**, trained by **${markdownText(algorithm)}** of effect-rl for ${step} steps.`,
    ...(result === undefined ? [] : [`Mean return of ${validation?.episodes} validation episodes: **${result}**`]),
    ...(files.replay === undefined ? [] : [`![An episode of the policy](${files.replay})`]),
    "## Use it",
    "With effect-rl, which is in no package registry but is installed from a clone of its repository (its `docs/install.md` says how), in the folder of this file:",
    [
      "```ts",
      `// act.ts`,
      `import { Effect, Layer } from "effect"`,
      `import { Policy } from "effect-rl"`,
      `import * as Node from "effect-rl/node"`,
      "",
      "const program = Effect.gen(function* () {",
      `  const policy = yield* Policy.load(import.meta.dirname)`,
      `  return yield* policy.act(${observation}${hasActionMask ? ', undefined, "all"' : ""})`,
      "})",
      "",
      `const layers = Layer.merge(Node.backend("wasm"), Node.platform)`,
      "const { action } = await Effect.runPromise(Effect.scoped(program).pipe(Effect.provide(layers)))",
      "console.log(action)",
      "```",
    ].join("\n"),
    `Observations are ${markdownCode(display(observationSpace))}, and actions ${markdownCode(display(actionSpace))}${hasActionMask ? ", of which a mask may forbid some" : ""}. \`${files.policy}\` is an ONNX file that contains the normalisation of the training, so any ONNX Runtime can run it, in any language. Its input has a row for each of any number of observations, with its numbers part by part:`,
    onnxCode(card),
    "## Training",
    ...(files.curve === undefined ? [] : [`![The learning curve](${files.curve})`]),
    "The config, from which `effect run config.yaml` trains it again if its env and algorithm are built in:",
    fenced(config, "yaml"),
  ].join("\n\n")
}
