/** Rollouts made up, with whatever a test wants to be different. */
import type { AgentStep, EnvironmentStep, Rollout } from "../../../src/agents/episode/Rollout.ts"
import type { Sample } from "../../../src/agents/episode/samples/Sample.ts"

const ending = { terminated: true, truncated: false, truncationReason: null }
const goesOn = { terminated: false, truncated: false, truncationReason: null }

export const callStep = (
  rollout: string,
  index: number,
  { parentId = null as string | null, turn = 0, said = "yes", call = {}, step = {} } = {},
): AgentStep => ({
  _tag: "AgentStep",
  id: `${rollout}/${index}`,
  index,
  turnId: `${rollout}/turn/${turn}`,
  parentId,
  call: {
    purpose: "action",
    target: "env",
    loopIndex: 0,
    messages: [{ role: "user", content: "Is it?" }],
    completion: {
      content: said,
      toolCalls: [],
      finishReason: "stop",
      usage: { inputTokens: 3, outputTokens: 1, reasoningTokens: 0 },
      tokens: null,
      model: "m",
      attempts: 1,
    },
    toolResults: [],
    parsed: { _tag: "Parsed", action: said, reward: 0 },
    incomplete: false,
    ...call,
  },
  toolResults: [],
  reward: 0,
  ...goesOn,
  ...step,
})

export const envStep = (rollout: string, index: number, { turn = 0, reward = 1, step = {} } = {}): EnvironmentStep => ({
  _tag: "EnvironmentStep",
  id: `${rollout}/${index}`,
  index,
  turnId: `${rollout}/turn/${turn}`,
  sourceAgentStepId: `${rollout}/${index - 1}`,
  agentStepIds: [`${rollout}/${index - 1}`],
  observation: "Is it?",
  action: "yes",
  nextObservation: null,
  feedback: { score: reward, target: null, message: "" },
  reward,
  ...ending,
  ...step,
})

export const rolloutOf = (
  id: string,
  { parent = null as string | null, reward = 1, said = "yes", steps = undefined as Rollout["steps"] | undefined } = {},
): Rollout => {
  const parentId = parent === null ? null : `${parent}/0`
  const all = steps ?? [callStep(id, 0, { parentId, said }), envStep(id, 1, { reward })]
  return {
    id,
    meta: {
      envId: `env of ${id}`,
      envType: "asked",
      agent: "memoryless_agent",
      model: "m",
      envSeed: 1,
      samplingSeed: 2,
      groupId: null,
      parentRolloutId: parent,
      depth: parent === null ? 0 : 1,
      player: null,
      tags: {},
    },
    steps: all,
    totalReward: all.reduce((sum, step) => sum + step.reward, 0),
    length: all.filter(({ _tag }) => _tag === "EnvironmentStep").length,
    ending,
  }
}

export const sampleOf = (rollout: Rollout, given: Partial<Sample>): Sample => ({
  id: `${rollout.id}/turn/0`,
  rolloutId: rollout.id,
  turnId: `${rollout.id}/turn/0`,
  groupId: null,
  parentRolloutId: rollout.meta.parentRolloutId,
  depth: rollout.meta.depth,
  player: null,
  purpose: "action",
  inputIds: [],
  actionMask: [],
  logprobs: null,
  stepIndices: [0],
  stepIds: [`${rollout.id}/0`],
  actionTargets: ["env"],
  hasEnvStep: true,
  parseFailed: false,
  incomplete: false,
  reward: 1,
  credit: 1,
  weight: 1,
  terminated: true,
  truncated: false,
  episodeTerminated: true,
  episodeTruncated: false,
  truncationReason: null,
  seqLenTruncated: false,
  seqLenOriginal: 0,
  seqLenRetained: 0,
  tags: {},
  ...given,
})
