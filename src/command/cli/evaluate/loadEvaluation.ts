/** Makes an evaluation from the file that the user names: a YAML file, or a module. It does not run the evaluation. */
import { dirname } from "node:path"
import { Effect, Schema } from "effect"
import { display, isPlain } from "../../../base/config/Config.ts"
import { exists } from "../../../base/files/files.ts"
import { logsDir } from "../../../agents/training/logsDir.ts"
import type { EvaluationError, EvaluationNeeds } from "../../../agents/evaluate/Evaluations.ts"
import type { EvaluationResult } from "../../../agents/evaluate/result.ts"
import { kindOf, refuseUnknownKind } from "../../../run/RunSpec.ts"
import { CommandError } from "../../CommandError.ts"
import { usageError } from "../output/output.ts"
import { isProgram, loadProgram } from "../userCode/loadTraining.ts"
import { notKeys, readLocatedYaml } from "../userCode/yamlFile.ts"

/** An Effect that plays an evaluation. It reads the settings of the command's flags from the service `RunOptions`. */
export type LoadedEvaluation = Effect.Effect<EvaluationResult, EvaluationError | CommandError, EvaluationNeeds>

/** Loads the evaluation in a file: a module's default export, or a config in YAML. */
export const loadEvaluation = Effect.fnUntraced(function* (file: string) {
  return yield* isProgram(file) ? fromProgram(file) : fromYaml(file)
})

// The code that asks language models is loaded only when it is needed.
const evaluations = Effect.promise(() => import("../../../agents/evaluate/Evaluations.ts"))

const fromYaml = Effect.fnUntraced(function* (file: string) {
  const { value: config, lines } = yield* readLocatedYaml(file)
  if (!isPlain(config)) return yield* notKeys(file, config)
  yield* refuseUnknownKind(config, { source: file, sources: lines })
  const kind = kindOf(config)
  // A file without `kind` may be an evaluation that lacks its data set.
  if (kind !== "evaluation" && (kind !== "training" || "kind" in config || "env" in config)) {
    return yield* usageError(notAnEvaluation(file, "it has no dataset"))
  }
  return yield* fromConfig(config, { baseDir: dirname(file), lines })
})

/** Makes the evaluation that a config describes. */
export const fromConfig = Effect.fnUntraced(function* (
  config: unknown,
  where: { readonly baseDir: string; readonly lines?: ReadonlyMap<string, string> },
) {
  const { fromConfig } = yield* evaluations
  return fromConfig(config, {
    ...where,
    placeOf: (resultsDir) => Effect.map(logsDir(resultsDir), (placed) => ({ resultsDir: placed })),
  }) satisfies LoadedEvaluation
})

/** Returns the message for a file that describes a training. */
export const notAnEvaluation = (file: string, reason: string): string =>
  `${file}: this is a training, not an evaluation (${reason}); train it with effect run ${file}, then evaluate the run with effect eval RUN`

const fromProgram = Effect.fnUntraced(function* (file: string) {
  if (!(yield* exists(file))) return yield* usageError(`${file}: there is no such file`)
  const program = yield* loadProgram(file, { expected: "Evaluations.fromConfig({ … })", isRun: isEvaluation })
  const { EvaluationResult } = yield* evaluations
  return Effect.filterOrFail(program, Schema.is(EvaluationResult), (result) =>
    CommandError.failed(
      `${file}: expected a default export that returns the result of Evaluations.fromConfig({ … }), found ${display(result)}`,
    ),
  ) satisfies LoadedEvaluation
})

/**
 * Tells whether a value is an Effect. The type parameters of an Effect don't exist at run time: a training passes here, and
 * is refused before it starts.
 */
const isEvaluation = (value: unknown): value is Effect.Effect<unknown, EvaluationError, EvaluationNeeds> =>
  Effect.isEffect(value)
