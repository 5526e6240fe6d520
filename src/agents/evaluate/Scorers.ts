/**
 * Makes scorers from a config, in which each scorer is the name of a type, or settings with a `type`. It also reads the files
 * that a judge's rubric names, and opens the judge's model. `Evaluations.ts` calls `openAll`. With `make` and `Kinds`, a
 * program adds scorers of its own.
 *
 * @example
 * ```yaml
 * scorers:
 *   - score
 *   - { type: solved, threshold: 0.5, name: half }
 *   - { type: judge, rubric: Is it polite?, lm_config: { model: gpt-4.1-mini } }
 * ```
 */
import { Context, Effect, type FileSystem, type Path, Schema } from "effect"
import { inject } from "../agent/internal/prompts.ts"
import { choiceHint } from "../../base/text/closest.ts"
import {
  ConfigError,
  decode as decodeStrictly,
  type DecodeOptions,
  display,
  isPlain,
  type Plain,
} from "../../base/config/Config.ts"
import { real, withDefault } from "../../base/config/fields.ts"
import type { LmService } from "../lm/Lm.ts"
import { LmConfig } from "../lm/LmConfig.ts"
import type { LmError } from "../lm/LmError.ts"
import { type ScoreDirection, directions } from "./report/direction.ts"
import * as Scorer from "./Scorer.ts"

type OpeningFailure = ConfigError | LmError

export interface ScorerContext<E = OpeningFailure, R = never> {
  /** The origin of the config and of its keys, for error messages. */
  readonly from: DecodeOptions
  /** The folder that relative paths in the config start from. */
  readonly baseDir: string
  /** Opens the model of a scorer that calls one. */
  readonly openLm: (config: LmConfig) => Effect.Effect<LmService, E, R>
}

/** A kind of scorer: the Schema of its config, and `open`, which returns a scorer and its config with all defaults. */
export interface ScorerKind {
  readonly type: string
  readonly schema: Schema.Codec<unknown, unknown>
  readonly open: <R>(
    config: Plain,
    context: ScorerContext<OpeningFailure, R>,
  ) => Effect.Effect<
    { readonly scorer: Scorer.Scorer; readonly config: Plain },
    OpeningFailure,
    R | FileSystem.FileSystem | Path.Path
  >
}

/** The settings that every scorer has. */
interface CommonScorerSettings {
  readonly name: string
  readonly direction?: ScoreDirection
}

/** Sets the direction of a scorer, if its config has one. */
const directed = (scorer: Scorer.Scorer, { direction = scorer.direction }: CommonScorerSettings): Scorer.Scorer => ({
  ...scorer,
  direction,
})

/** Makes a kind of scorer from the Schema of its config and a function that takes the decoded config. */
export const make = <S extends Schema.Codec<CommonScorerSettings, unknown>>(kind: {
  readonly type: string
  /** The Schema of the config, which must include the settings that `fields` returns. */
  readonly schema: S
  readonly make: (config: S["Type"]) => Scorer.Scorer
}): ScorerKind => ({
  type: kind.type,
  schema: kind.schema,
  open: (plain, { from }) =>
    Effect.map(decodeStrictly(kind.schema, plain, from), (config) => {
      const encoded: unknown = Schema.encodeSync(kind.schema)(config)
      return { scorer: directed(kind.make(config), config), config: isPlain(encoded) ? encoded : {} }
    }),
})

/** Returns the Schemas of the settings that every scorer has. */
export const fields = <Type extends string>(type: Type) => ({
  type: Schema.Literal(type),
  /** The name of the scorer in tables. */
  name: withDefault(Schema.NonEmptyString, type),
  /** Which values are better: `higher`, `lower` or `none`. Default: the scorer's own, e.g. `lower` for `tokens`. */
  direction: Schema.optionalKey(Schema.Literals(directions)),
})

/** Makes a kind of scorer that has no settings besides its name. */
const plain = (type: string, of: (name: string) => Scorer.Scorer): ScorerKind =>
  make({ type, schema: Schema.Struct(fields(type)), make: ({ name }) => of(name) })

const JudgeConfig = Schema.Struct({
  ...fields("judge"),
  /** A description of a good answer; `{file:path}` inserts the text of a file. */
  rubric: Schema.NonEmptyString,
  /**
   * A key of the tasks' metadata with a person's score of the answer. The report then has the judge's agreement with it: the
   * share of equal verdicts, and Cohen's kappa.
   */
  label: Schema.optionalKey(Schema.NonEmptyString),
  /** The smallest label that counts as a pass, for the agreement. Default: 0.5. */
  labelThreshold: Schema.optionalKey(real),
  /** The smallest score of the judge that counts as a pass, for the agreement. Default: 0.5. */
  judgeThreshold: Schema.optionalKey(real),
  lmConfig: LmConfig,
})

const judge: ScorerKind = {
  type: "judge",
  schema: JudgeConfig,
  open: Effect.fnUntraced(function* (plain, { from, baseDir, openLm }) {
    const config = yield* decodeStrictly(JudgeConfig, plain, from)
    const unused = (["labelThreshold", "judgeThreshold"] as const).find((one) => config[one] !== undefined)
    if (config.label === undefined && unused !== undefined) {
      return yield* ConfigError.at(from, unused, "expected label as well, the key of the tasks' metadata with a score")
    }
    const encoded: unknown = Schema.encodeSync(JudgeConfig)(config)
    const injected = yield* inject(isPlain(encoded) ? encoded : {}, ["rubric"], [], { ...from, baseDir })
    const lm = yield* openLm(config.lmConfig)
    const rubric = injected.texts["rubric"] ?? config.rubric
    const { name, lmConfig, label: key, labelThreshold = 0.5, judgeThreshold = 0.5 } = config
    const label = key === undefined ? undefined : { key, labelThreshold, threshold: judgeThreshold }
    return {
      scorer: directed(Scorer.judge({ name, lm, config: lmConfig, rubric, label }), config),
      config: injected.config,
    }
  }),
}

const SolvedConfig = Schema.Struct({
  ...fields("solved"),
  /** The smallest sum of the env's scores with which an episode is solved. */
  threshold: withDefault(real, 1),
})

const solved = make({ type: "solved", schema: SolvedConfig, make: Scorer.solved })

export const builtIn: ReadonlyArray<ScorerKind> = [
  plain("score", Scorer.score),
  solved,
  plain("steps", Scorer.steps),
  plain("exact", Scorer.exact),
  plain("f1", Scorer.f1),
  plain("contains", Scorer.contains),
  plain("tokens", Scorer.tokens),
  plain("calls", Scorer.calls),
  plain("latency", Scorer.latency),
  judge,
]

/** The service with the kinds of scorers that configs can name. Provide a longer list to add a kind. */
export const Kinds = Context.Reference<ReadonlyArray<ScorerKind>>("effect-rl/evaluate/ScorerKinds", {
  defaultValue: () => builtIn,
})

/** The type of a scorer that a program has made as a value; a saved config has its name and direction, but not its code. */
const codeType = "code"

/** Tells whether a config in a program has a scorer itself, such as `Scorer.make(…)`, instead of settings. */
const isScorer = (config: unknown): config is Scorer.Scorer =>
  typeof config === "object" &&
  config !== null &&
  "score" in config &&
  typeof config.score === "function" &&
  "name" in config &&
  typeof config.name === "string"

/**
 * Makes a scorer from its name or its settings (with keys in camelCase). A config in a program may have a scorer itself. Also
 * returns its config with all defaults.
 */
export const open = Effect.fnUntraced(function* <R>(config: unknown, context: ScorerContext<OpeningFailure, R>) {
  const { from } = context
  if (isScorer(config)) {
    const { name, direction } = config
    return { scorer: config, config: { type: codeType, name, direction } }
  }
  const settings = typeof config === "string" ? { type: config } : isPlain(config) ? config : { type: undefined }
  const { type } = settings
  const kinds = yield* Kinds
  const kind = kinds.find((candidate) => candidate.type === type)
  if (kind !== undefined) return yield* kind.open(settings, context)
  if (type === codeType) {
    const problem = `${display(settings.name)} is a scorer of a program, which is not in the config; evaluate the program itself`
    return yield* ConfigError.at(from, "", problem, { unknown: "code" })
  }
  const names = kinds.map((candidate) => candidate.type)
  const found = display(type === undefined ? config : type)
  return yield* ConfigError.at(from, "", `expected a scorer, found ${found}; ${choiceHint(type, names)}`)
})

/** Makes all scorers of a list. Fails if two of them have the same name. */
export const openAll = Effect.fnUntraced(function* <R>(
  configs: ReadonlyArray<unknown>,
  { from, ...context }: ScorerContext<OpeningFailure, R>,
) {
  const prefixed = (at: number): DecodeOptions => ({ ...from, prefix: [...(from.prefix ?? []), String(at)] })
  const opened = yield* Effect.forEach(configs, (config, at) => open(config, { ...context, from: prefixed(at) }))
  const names = opened.map(({ scorer }) => scorer.name)
  const twice = names.findIndex((name, at) => names.indexOf(name) < at)
  if (twice >= 0) {
    return yield* ConfigError.at(prefixed(twice), "", `expected a name of its own, found "${names[twice]}" again`)
  }
  return opened
})
