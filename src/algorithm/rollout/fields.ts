import { Schema } from "effect"
import { nonNegative, positiveInt, withDefault } from "../../config/fields.ts"
import { memoryFields, networkFields } from "../network/trunk.ts"

/** What the configs of rollout learners have in common; those of actor-critics on top of `learningFields`. */
export const learningFields = {
  /** Below zero in a game against oneself, where what comes next is the other's: see `TicTacToe.selfPlay`. */
  gamma: withDefault(Schema.Finite.check(Schema.isBetween({ minimum: -1, maximum: 1 })), 0.99),
  /** Gradients are scaled down to this global norm; 0 leaves them alone. */
  maxGradNorm: withDefault(nonNegative, 0.5),
  /** `linear` anneals the learning rate to zero over the run. */
  schedule: withDefault(Schema.Literals(["constant", "linear"]), "linear"),
  /** How value targets are made: `NSTEP` is `LAMBDA` with λ = 1, and `GAE` gives the same targets as `LAMBDA`. */
  returns: withDefault(Schema.Literals(["GAE", "LAMBDA", "NSTEP"]), "GAE"),
  /** `onestep` learns after every step of the envs, whatever `nsteps` says. */
  trainMode: withDefault(Schema.Literals(["nstep", "onestep"]), "nstep"),
  ...networkFields,
}

export const actorCriticFields = {
  ...learningFields,
  ...memoryFields,
  /** What the policy's entropy counts: more keeps it from being sure too soon. */
  entropyCoefficient: withDefault(nonNegative, 0.01),
  /** What the critic's error counts in the loss: in PPO half the squared error, in A2C all of it (without the ½). */
  valueCoefficient: withDefault(nonNegative, 0.5),
  /** Steps for which actions are drawn with the same noise: more than 1 explores in longer pushes. */
  noiseRepeat: withDefault(positiveInt, 1),
}

interface Choices {
  readonly nsteps: number
  readonly lambda: number
  readonly returns: "GAE" | "LAMBDA" | "NSTEP"
  readonly trainMode: "nstep" | "onestep"
}

/** A config with `returns` and `trainMode` worked into λ and the number of steps. */
export const resolved = <C extends Choices>(config: C): C => ({
  ...config,
  lambda: config.returns === "NSTEP" ? 1 : config.lambda,
  nsteps: config.trainMode === "onestep" ? 1 : config.nsteps,
})
