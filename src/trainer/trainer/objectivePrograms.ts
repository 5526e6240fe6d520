/**
 * Compiles the gradient programs of the runs, one for each objective, and starts the threads that compute their reference
 * models.
 */
import { Effect, Scope } from "effect"
import { Backend } from "../../tensor/backend/Backend.ts"
import type { TokenObjective } from "../../rl/losses/Losses.ts"
import type { UpcomingTurn } from "../batches/DataLoader.ts"
import { objectiveAt } from "../config/OrchestratorConfig.ts"
import type { References } from "../reference/references.ts"
import type { Runs } from "../runs/Runs.ts"
import type { RunSlot } from "../runs/RunSlot.ts"
import { compileGradients, type GradientProgram, type GradientShape } from "./gradientProgram.ts"
import type { TrainedModel } from "./TrainedModel.ts"

/** The compiled programs of a trainer, and what is needed to compile more. */
export interface ObjectivePrograms {
  readonly backend: Backend["Service"]
  /** The programs live until this scope closes. */
  readonly scope: Scope.Scope
  readonly runs: Runs["Service"]
  readonly model: TrainedModel
  readonly shape: Pick<GradientShape, "rows" | "width" | "block" | "mixing" | "replayed">
  readonly startReferences: ((device: string) => Effect.Effect<References, never, Scope.Scope>) | undefined
  /** The programs by their objectives; see `keyOf`. */
  readonly compiled: Map<string, GradientProgram>
  /** The threads of reference models, by their devices. */
  readonly references: Map<string, References>
}

const keyOf = (objective: TokenObjective): string => JSON.stringify(objective)

/** Compiles the programs of some objectives together, so that they share the weights of the model. */
const compile = Effect.fnUntraced(function* (programs: ObjectivePrograms, objectives: ReadonlyArray<TokenObjective>) {
  const { backend, scope, model, runs, shape, startReferences, references } = programs
  const adapters = model.lora === null ? null : { shape: model.lora.shape, maxRuns: runs.maxRuns }
  const compiled = yield* compileGradients({ ...shape, config: model.config, adapters }, objectives).pipe(
    Effect.provideService(Backend, backend),
    Effect.provideService(Scope.Scope, scope),
  )
  for (const [at, program] of compiled.entries()) {
    programs.compiled.set(keyOf(objectives[at]), program)
    if (runs.isMaster) yield* Effect.logInfo(`the program ${program.name} runs on ${program.device}`)
    const device = program.referenceDevice
    if (device === undefined || startReferences === undefined || references.has(device)) continue
    references.set(device, yield* Effect.provideService(startReferences(device), Scope.Scope, scope))
  }
  return compiled[0]
})
/**
 * Returns the program of an objective. If it must be compiled, compiles it together with all objectives that the current runs
 * use or will use.
 */
const programOf = Effect.fnUntraced(function* (programs: ObjectivePrograms, objective: TokenObjective) {
  const { compiled, runs, model } = programs
  const known = compiled.get(keyOf(objective))
  if (known !== undefined) return known
  const all = [
    objective,
    ...runs.slots().flatMap(({ config, progress }) => [objectiveAt(config, progress.step), config.objective]),
  ]
  const missing = [...new Map(all.map((one) => [keyOf(one), one])).values()].filter((one) => !compiled.has(keyOf(one)))
  // If compiling all together fails, compile this one alone: another objective's failure concerns only the runs that use it.
  return yield* model.lora === null
    ? compile(programs, [objective])
    : Effect.catch(compile(programs, missing), () => compile(programs, [objective]))
})

/** Returns the program for a step of a run, with the current weights written into it. */
export const readyProgram = (programs: ObjectivePrograms, { config }: RunSlot, step: number) =>
  Effect.tap(programOf(programs, objectiveAt(config, step)), programs.model.writeTo)

/** Returns the thread that computes the reference model of a program; undefined if there is none. */
export const referencesOf = ({ references }: ObjectivePrograms, { referenceDevice }: GradientProgram) =>
  referenceDevice === undefined ? undefined : references.get(referenceDevice)

/** Lets a thread begin to compute the reference model for a turn, if one program computes the whole turn. */
export const prepareReferences = Effect.fnUntraced(function* (
  programs: ObjectivePrograms,
  { microBatch, shares }: UpcomingTurn,
) {
  const { compiled, references, runs } = programs
  if (references.size === 0) return
  const all = new Set(
    shares.map(({ index, step }) => {
      const run = runs.slot(index)
      return run === undefined ? undefined : compiled.get(keyOf(objectiveAt(run.config, step)))
    }),
  )
  const [program] = all
  if (program !== undefined && all.size === 1)
    yield* referencesOf(programs, program)?.prepare(microBatch) ?? Effect.void
})
