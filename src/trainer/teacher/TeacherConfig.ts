/**
 * Declares the config of a teacher, for on-policy distillation: the run's model samples, the teacher gives the log-probability of
 * each sampled token, and the token's advantage is
 *
 *     coefficient · (log π_teacher(token) − log π(token))
 *
 * Its mean is the reverse KL divergence from the model to the teacher, times −coefficient.
 */
import { Schema } from "effect"
import { variableIn } from "../../base/config/Config.ts"
import { bounded, fraction, positive, positiveBelow, withDefault } from "../../base/config/fields.ts"

const common = {
  /** The factor of the difference of the log-probabilities in the advantage of a token. */
  coefficient: withDefault(positive, 1),
  /**
   * The number that is subtracted from the difference of the log-probabilities: with `none` 0, with `mean` the mean over all
   * tokens of the step, which makes the gradient less noisy while the teacher is far away.
   */
  baseline: withDefault(Schema.Literals(["none", "mean"]), "none"),
  /** Whether the advantages of the rewards are added; by default, only the teacher's probabilities count. */
  rewards: withDefault(Schema.Boolean, false),
  /**
   * The share of samples of the supervised steps before which the hint stands, too, so that the model learns to use hints.
   */
  supervisedHints: withDefault(fraction, 0),
}

/** A hint, which tells the teacher more than the model knows. */
const Hint = Schema.NonEmptyString.check(
  Schema.makeFilter((hint) =>
    hint.includes("{answer}")
      ? undefined
      : "Expected a text with {answer}, without which the teacher knows nothing more",
  ),
)

/**
 * The text of a system message that the teacher reads before the prompt, in which `{answer}` is replaced by the task's right
 * answer; null for none.
 */
const optionalHint = withDefault(Schema.NullOr(Hint), null)

/** The name of an environment variable. The key itself must not be in the config, because the config is saved. */
const KeyVariable = Schema.String.check(
  Schema.makeFilter((key) =>
    variableIn(key) === undefined ? "Expected ${NAME}, the environment variable that holds the key" : undefined,
  ),
)

/** A teacher in a folder with Hugging Face's files, which has the tokens of the trained model. */
const FolderTeacher = Schema.Struct({
  /** The teacher is a model in a folder. */
  type: Schema.Literal("folder"),
  /** The folder, absolute or relative to the config's file. */
  path: Schema.NonEmptyString,
  /** The text of a system message that the teacher reads before the prompt; see `self`. */
  hint: optionalHint,
  ...common,
})

/** A teacher at a server with OpenAI's protocol that computes log-probabilities of prompts, such as vLLM. */
const ServerTeacher = Schema.Struct({
  /** The teacher is a model at a server. */
  type: Schema.Literal("server"),
  /** The server's name for the model. */
  model: Schema.NonEmptyString,
  /** The address, such as `http://127.0.0.1:8000/v1`. */
  baseUrl: Schema.NonEmptyString,
  /** The environment variable with the key, as `${NAME}`; null sends no key. */
  apiKey: withDefault(Schema.NullOr(KeyVariable), null),
  /** The time limit of a request, in seconds. */
  timeoutS: withDefault(positiveBelow("seconds"), 900),
  /** The largest number of requests at the same time. */
  concurrency: withDefault(bounded("atOnce"), 16),
  /** The text of a system message that the teacher reads before the prompt; see `self`. */
  hint: optionalHint,
  ...common,
})

/**
 * The run's own model as its teacher, which reads a hint before the prompt (self-distillation; Shenfeld et al. 2026,
 * arXiv:2601.19897).
 */
const SelfTeacher = Schema.Struct({
  /** The teacher is the model itself, with more context. */
  type: Schema.Literal("self"),
  /** The text of a system message before the prompt, in which `{answer}` is replaced by the task's right answer. */
  hint: withDefault(Hint, "{answer}"),
  ...common,
})

export const TeacherConfig = Schema.Union([FolderTeacher, ServerTeacher, SelfTeacher]).annotate({
  expected: "a teacher whose type is folder, server or self",
})
export type TeacherConfig = typeof TeacherConfig.Type
