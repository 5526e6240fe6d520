/** Checks that a learner supports the settings of its training. */
import { ConfigError } from "../../base/config/Config.ts"
import type { Env } from "../env/Env.ts"
import { type Capabilities, capabilitiesOf, type Learner } from "../learner/Learner.ts"
import type { Plan } from "./plan.ts"

/** The facts about a training that a learner may not support. */
interface TrainingFacts extends Pick<Plan, "settings" | "env">, Capabilities {
  /** The algorithm's name, in quotation marks. */
  readonly name: string
  readonly config: Plan["algorithm"]["config"]
  readonly playsInGraph: boolean
  readonly hasPolicy: boolean
  /** The setting that normalises observations or rewards, if one is on. */
  readonly normalize: string | undefined
  /** The setting that steps envs in other threads, if one is on. */
  readonly threads: string | undefined
  /** A validation env whose agents differ from those of the training's env, if the agents have separate policies. */
  readonly otherGame: Env | undefined
}

/** One setting that some learners do not support. */
interface SettingRule {
  /** Returns the key of the setting, if it is on and the learner does not support it. */
  readonly key: (facts: TrainingFacts) => string | undefined
  readonly problem: (facts: TrainingFacts) => string
}

/** The rules. The first one that a training breaks becomes the error. */
const rules: ReadonlyArray<SettingRule> = [
  {
    key: ({ settings, slices }) => (settings.ranks > slices ? "ranks" : undefined),
    problem: ({ name, config, settings: { ranks }, slices }) =>
      "slices" in config
        ? `expected at most algorithm.slices, which is ${slices}, found ${ranks}; set algorithm.slices to ${ranks} or more, a divisor of the rows of a minibatch`
        : `expected 1 with algorithm ${name}, whose minibatches have no slices, found ${ranks}`,
  },
  {
    key: ({ settings, hasPolicy }) =>
      settings.validation.everySteps > 0 && !hasPolicy ? "validation.every_steps" : undefined,
    problem: ({ name }) => `algorithm ${name} can't be validated: it lacks the hook "policy"; 0 turns validation off`,
  },
  {
    key: ({ settings, totalLoss }) => (settings.logLoss && !totalLoss ? "log_loss" : undefined),
    problem: ({ name }) =>
      `expected false with algorithm ${name}, whose updates don't minimise one total loss of a rollout; its own losses are recorded anyway`,
  },
  {
    key: ({ config, normalize }) => ((config.her ?? null) !== null ? normalize : undefined),
    problem: () => "expected false with algorithm.her, which computes rewards from goals as the env observes them",
  },
  {
    key: ({ playsInGraph, normalize }) => (playsInGraph ? normalize : undefined),
    problem: () => `expected false with algorithm.rollouts "graph", whose envs are stepped in the graph`,
  },
  {
    key: ({ playsInGraph, settings }) => (playsInGraph && settings.workers > 0 ? "workers" : undefined),
    problem: () => `expected 0 with algorithm.rollouts "graph", which steps all envs in one program`,
  },
  {
    key: ({ plans, normalize }) => (plans ? normalize : undefined),
    problem: ({ name }) => `expected false with algorithm ${name}, which searches the env's own states`,
  },
  {
    key: ({ imitates, normalize }) => (imitates ? normalize : undefined),
    problem: ({ name }) =>
      `expected false with algorithm ${name}, which imitates an expert that sees the env's own observations, and reads no rewards`,
  },
  {
    key: ({ otherGame }) => otherGame && "validation.envs",
    problem: ({ name, env, otherGame }) =>
      `expected games with the agents of ${env.id} with algorithm ${name}, whose policies play them together, found ${otherGame?.id}`,
  },
  {
    key: ({ plans, threads }) => (plans ? threads : undefined),
    problem: ({ name }) => `expected 0 with algorithm ${name}, which searches the env's own states`,
  },
  {
    key: ({ plays, normalize }) => (plays === "nothing" ? normalize : undefined),
    problem: ({ name }) => `algorithm ${name} plays no env, so there is nothing to normalise by`,
  },
]

const threadsOf = ({ workers, validation }: Plan["settings"]): string | undefined => {
  if (workers > 0) return "workers"
  return validation.workers > 0 ? "validation.workers" : undefined
}

const factsOf = ({ settings, algorithm, env, validationEnvs }: Plan, learner: Learner): TrainingFacts => {
  const normalized = (["observations", "rewards"] as const).find((key) => settings.normalize[key])
  return {
    ...capabilitiesOf(learner),
    settings,
    env,
    name: `"${String(settings.algorithm.name)}"`,
    config: algorithm.config,
    playsInGraph: learner.episodes !== undefined,
    hasPolicy: learner.policy !== undefined,
    normalize: normalized && `normalize.${normalized}`,
    threads: threadsOf(settings),
    otherGame: learner.separate && validationEnvs.find(({ agents }) => agents?.join() !== env.agents?.join()),
  }
}

/** Returns an error if a setting of the training is on that the learner does not support; else undefined. */
export const misfit = (plan: Plan, learner: Learner): ConfigError | undefined => {
  const facts = factsOf(plan, learner)
  for (const { key, problem } of rules) {
    const setting = key(facts)
    if (setting !== undefined) return ConfigError.at(plan.from, setting, problem(facts))
  }
  return undefined
}
