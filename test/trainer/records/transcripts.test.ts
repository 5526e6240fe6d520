import { assert, describe, it } from "vitest"
import { transcriptsOfStep, transcriptsOfValidation } from "../../../src/trainer/records/transcripts.ts"
import { callStep, envStep, rolloutOf } from "../../command/ui/rollouts.ts"

const good = rolloutOf("good", { reward: 1 })
/** A rollout whose answer was cut off, which costs reward. */
const cutOff = rolloutOf("cut-off", {
  steps: [
    callStep("cut-off", 0, {
      said: "abcabc",
      call: { incomplete: true, parsed: { _tag: "ParseFailed", feedback: "Answer more briefly.", reward: -0.1 } },
      step: { reward: -0.1, truncated: true, truncationReason: "max_steps" },
    }),
  ],
})
const twoTurns = rolloutOf("two", {
  steps: [
    callStep("two", 0, { turn: 0 }),
    envStep("two", 1, { turn: 0, reward: 0, step: { terminated: false } }),
    callStep("two", 2, { turn: 1 }),
    envStep("two", 3, { turn: 1, reward: 1 }),
  ],
})

describe("the transcripts of a step", () => {
  it("have the advantage, the step and the group, and the answer that could not be acted upon", () => {
    const events = transcriptsOfStep(
      { rollouts: [good, cutOff, twoTurns, good], advantages: [0.5, -0.5, 1, -1], groupOf: [0, 0, 1, 2] },
      { step: 20, seenEpisodes: 80, groups: 2, nowMillis: 0 },
    )
    assert.deepStrictEqual(
      events.map(({ mode, episode, stepIndex, episodeScore, details }) => [
        mode,
        episode,
        stepIndex,
        episodeScore,
        details?.action,
        details?.info,
      ]),
      [
        ["train", 81, 1, 1, "yes", { step: 20, group: 0, reward: 1, advantage: 0.5 }],
        [
          "train",
          82,
          1,
          0,
          null,
          {
            parse_failed: true,
            incomplete_completion: true,
            said: "abcabc",
            step: 20,
            group: 0,
            reward: -0.1,
            advantage: -0.5,
          },
        ],
        ["train", 83, 1, 0, "yes", { step: 20, group: 1, reward: 1, advantage: 1 }],
        ["train", 83, 2, 1, "yes", { step: 20, group: 1, reward: 1, advantage: 1 }],
      ],
    )
  })

  it("have no advantage if the objective compares none", () => {
    const [event] = transcriptsOfStep(
      { rollouts: [good], advantages: undefined, groupOf: [0] },
      { step: 3, seenEpisodes: 12, groups: 1, nowMillis: 0 },
    )
    assert.deepStrictEqual(event.details?.info, { step: 3, group: 0, reward: 1 })
  })

  it("count the episodes of a validation by themselves", () => {
    const events = transcriptsOfValidation([good, twoTurns], { step: 40, nowMillis: 0 })
    assert.deepStrictEqual(
      events.map(({ mode, seenEpisodes, episode, stepIndex, details }) => [mode, seenEpisodes, episode, stepIndex, details?.info]), // prettier-ignore
      [
        ["validation", 40, 1, 1, {}],
        ["validation", 40, 2, 1, {}],
        ["validation", 40, 2, 2, {}],
      ],
    )
  })
})
