/**
 * Defines `effect push RUN`, which writes a run's policy as a model repository with a model card, to a folder or to the
 * Hugging Face hub.
 */
import { resolve } from "node:path"
import { Effect, Option, Record } from "effect"
import { visible } from "../../../base/text/text.ts"
import { utf8 } from "../../../base/text/utf8.ts"
import { modelCard } from "../../../rl/export/modelCard.ts"
import { curveSvg } from "../../../rl/export/curveFiles.ts"
import { gifOf } from "../../../base/formats/picture/movie.ts"
import { decodePolicy } from "../../../rl/policy/decodePolicy.ts"
import { unplacedEntry } from "../../../run/find/RunEntry.ts"
import * as Layout from "../../../run/Layout.ts"
import { withoutLinks } from "../../../run/read/withoutLinks.ts"
import { over } from "../../../run/RunReader.ts"
import { onDisk } from "../../../run/store/FileTree.ts"
import { aggregateCurves } from "../../../base/statistics/statistics.ts"
import { openHub } from "../../../agents/task/hub/client.ts"
import { checkId, uploadModel } from "../../../agents/task/hub/upload.ts"
import { requireNewFolder, writeFolder } from "../export/folder.ts"
import { movieFile } from "../export/movie.ts"
import { policyFile } from "../export/policy.ts"
import { havingCheckpoint, ofKind, runFolder, warningSource } from "../findRun.ts"
import { withRunsOnDisk } from "../openRuns.ts"
import {
  argument,
  type FlagValues,
  lookupDir,
  number,
  runArgument,
  subcommand,
  text,
  toggle,
  trustFlag,
} from "../flags.ts"
import { usageError, writeError, writeOut } from "../output/output.ts"

const flags = {
  run: argument("run", runArgument),
  resultsDir: lookupDir,
  to: text("to", "folder", "The new folder to write the repository to"),
  repo: text("repo", "name", "The repository on the Hugging Face hub, such as ada/ppo-CartPole-v1, with HF_TOKEN set"),
  private: toggle("private", "Make a new repository of the hub private"),
  step: number("step", "countOrNone", "The checkpoint of this step (default: the newest)"),
  file: text(
    "file",
    "file",
    "The module that made the run, if its env or algorithm is your own; only the replay needs it",
  ),
  trust: trustFlag,
}

const usable = havingCheckpoint(ofKind("a training with a policy", "training"))

export const push = subcommand(
  "push",
  {
    description:
      "Publish a run's policy as a model repository: the policy, its weights and config, and a card with results, the " +
      "learning curve, an episode as a moving picture, and code that uses it.",
    examples: {
      "effect push latest --to ppo-cartpole": "The repository as a folder",
      "effect push ppo/0001 --repo ada/ppo-CartPole-v1": "To the Hugging Face hub, or the server in HF_ENDPOINT",
    },
  },
  flags,
  Effect.fnUntraced(function* (input) {
    if (Option.isSome(input.to) === Option.isSome(input.repo)) {
      return yield* usageError("expected either --to FOLDER or --repo OWNER/NAME")
    }
    if (input.private && Option.isNone(input.repo)) return yield* usageError("--private only works with --repo")
    if (Option.isSome(input.to)) yield* requireNewFolder(input.to.value, "--to")
    if (Option.isSome(input.repo)) yield* failingAtHub(checkId(input.repo.value))
    const options = { usable, step: input.step }
    yield* withRunsOnDisk({ runs: [input.run], resultsDir: input.resultsDir }, options, ({ runs: [run], resultsDir }) =>
      pushRun({ ...input, run, resultsDir }),
    )
  }),
)

const pushRun = Effect.fnUntraced(function* (input: FlagValues<typeof flags>) {
  const run = resolve(yield* runFolder(input.run, { folders: [input.resultsDir], usable }))
  const files = yield* filesOf({ run, step: input.step, file: input.file })
  if (Option.isSome(input.to)) {
    yield* writeFolder(input.to.value, files)
    return yield* writeOut(`${input.to.value}\n`)
  }
  const id = Option.getOrElse(input.repo, () => "")
  const upload = { id, isPrivate: input.private, summary: "Add a policy trained by effect-rl", files }
  const { endpoint } = yield* failingAtHub(openHub(id))
  yield* writeError(`sending ${id} to ${endpoint.origin}\n`)
  const page = yield* failingAtHub(uploadModel(upload))
  yield* writeOut(`${page}\n`)
})

const failingAtHub = Effect.mapError(({ message }: { readonly message: string }) => usageError(`--repo: ${message}`))

const names = { curve: "curve.gif", replay: "replay.gif" }

/** Makes the files of the repository. */
const filesOf = Effect.fnUntraced(function* (wanted: Parameters<typeof policyFile>[0]) {
  const { run } = wanted
  const policy = yield* policyFile(wanted, "onnx")
  const weights = yield* policyFile(wanted, "safetensors")
  const { about, programs } = yield* Effect.mapError(decodePolicy(policy, `${run}: its policy`), ({ message }) =>
    usageError(`${message}; resume the run to save it anew`),
  )
  const config = yield* (yield* onDisk(run)).read(Layout.config)
  const validations = yield* over(yield* withoutLinks(warningSource, run))(unplacedEntry(run)).curve
  const scored = validations.findLast(({ step }) => step <= about.step)
  const name = `${about.algorithm}-${about.env}`.replace(/[^\w.-]+/g, "-")
  const curve = aggregateCurves([validations.map(({ step, mean: value }) => ({ step, value }))])
  const drawn = curve.length === 0 ? undefined : yield* gifOf([[curveSvg(name, curve)]], 1)
  const movie = yield* Effect.result(movieFile(wanted, { episodes: Option.none(), speed: Option.none() }, "gif"))
  if (movie._tag === "Failure") {
    const { message }: { readonly message?: unknown } = Object(movie.failure)
    yield* writeError(`without ${names.replay}: ${visible(String(message))}\n`)
  }
  const pictures = {
    ...(drawn !== undefined && { [names.curve]: drawn }),
    ...(movie._tag === "Success" && { [names.replay]: movie.success }),
  }
  const card = modelCard({
    name,
    about,
    inputs: Record.map(programs.main.inputs, ({ shape }) => shape),
    validation: scored && { meanReturn: scored.mean, stdReturn: scored.std, episodes: scored.episodes },
    config: utf8.decode(config),
    files: {
      policy: Layout.inStep.onnx,
      ...(drawn !== undefined && { curve: names.curve }),
      ...(movie._tag === "Success" && { replay: names.replay }),
    },
  })
  return {
    "README.md": utf8.encode(card),
    [Layout.inStep.onnx]: policy,
    [Layout.inStep.weights]: weights,
    [Layout.config]: config,
    ...pictures,
  }
})
