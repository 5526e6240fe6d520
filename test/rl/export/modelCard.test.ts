import { assert, it } from "vitest"
import { modelCard } from "../../../src/rl/export/modelCard.ts"
import * as Space from "../../../src/rl/env/Space.ts"

it("a model card shows the names of somebody else's policy as they are, on one line", () => {
  const env = "Pole-v1**\n\n# Free\n<img src=x onerror=alert(1)> [here](https://evil.example)"
  const card = modelCard({
    name: "ppo",
    about: {
      env,
      algorithm: "ppo`\n---\n",
      step: 5,
      observationSpace: Space.dict({ "a`\n\n# b": Space.discrete(2) }),
      actionSpace: Space.discrete(2),
      hasActionMask: false,
    },
    inputs: { observations: [1, 2] },
    validation: undefined,
    config: "a: 1\n```\n# b",
    files: { policy: "policy.onnx" },
  })
  // The header is YAML, which quotes the names.
  const [, , body = ""] = card.split(/^---$/m)
  const lines = body.split("\n")
  assert.deepStrictEqual(
    lines.filter((line) => line.startsWith("#")),
    ["# ppo", "## Use it", "## Training", "# b"],
  )
  const shown =
    "A policy for **Pole-v1\\*\\* \\#&#8203; Free &lt;img src=x onerror=alert\\(1\\)\\> \\[here\\]\\(https\\://evil.example\\)**, " +
    "trained by **ppo\\` ---** of effect-rl for 5 steps."
  assert.include(lines, shown)
  assert.isTrue(lines.some((line) => line.startsWith("Observations are `Dict(a'\\u{a}\\u{a}# b: Discrete(2))`, and")))
})
