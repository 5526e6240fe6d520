/** Runs a training that a page requests, and sends the page its progress, episodes to watch, and the result. */
import { Cause, Effect, Exit, Layer, Option } from "effect"
import * as wasm from "../../../tensor/backend/wasm.ts"
import { messageOf } from "../../../base/text/text.ts"
import { keyPlaces, readYamlText } from "../../../base/config/yaml.ts"
import * as Layout from "../../../run/Layout.ts"
import { Recorder, type Sink } from "../../../run/record/Recorder.ts"
import { ObjectStore } from "../../../run/store/objects/ObjectStore.ts"
import { RunStore } from "../../../run/store/RunStore.ts"
import { RunOptions } from "../../../run/RunOptions.ts"
import * as Training from "../../../rl/train/Train.ts"
import type { PlayAnswer, Train } from "./messages.ts"

/** The name of the page's config in error messages. It is also the name under which the user can save the config. */
const source = "play.yaml"

/** The connection between a training and the page. */
export interface Link {
  readonly send: (answer: PlayAnswer) => void
  /** Whether the page wants to watch an episode. */
  isWatching: boolean
}

/**
 * Trains until the end or an interruption. It never fails: the last message to the page describes how the training ended. The
 * config is read in the same way as `effect run` reads a file, so that the errors are the same, and with the backend `wasm`
 * also the digest.
 */
export const train = (link: Link, request: Train): Effect.Effect<void, never, ObjectStore> =>
  Effect.suspend(() => {
    let directory: string | undefined
    /** Whether an episode has been requested since the last events. */
    let isPlayed = false
    const sink: Sink = Effect.fnUntraced(function* (files, about) {
      directory = files.directory
      const { env, totalSteps, resumedFromStep } = about
      link.send({ _tag: "Started", directory, env, step: resumedFromStep ?? 0, totalSteps })
      return {
        emit: Effect.fnUntraced(function* (events) {
          for (const event of events) {
            if (event._tag === "Warning") link.send({ _tag: "Refused", message: event.message })
            if (event._tag !== "UpdateApplied") continue
            const { step, metrics } = event
            const { "charts/episodic_return": meanReturn = null, "charts/SPS": stepsPerSecond = null } = metrics
            link.send({ _tag: "Progress", step, meanReturn, stepsPerSecond })
            // The page shows the last policy when the training has ended.
            if (step >= totalSteps) link.isWatching = true
          }
          // The folder of a requested step exists only when the next events arrive, so the store is read then.
          if (isPlayed) yield* showEpisodes(link, files)
          isPlayed = false
        }),
        flush: Effect.void,
      }
    })
    const store = RunStore.layerObjects(request.resume === null ? {} : { resume: request.resume }).pipe(
      Layer.provide(episodesInMemory),
    )
    const training = Effect.gen(function* () {
      const document = yield* readYamlText(request.config, source)
      return yield* Training.fromConfig(document.value, { lines: keyPlaces(document, source) })
    })
    const isStepWanted = Effect.sync(() => {
      const wanted = link.isWatching
      link.isWatching = false
      isPlayed ||= wanted
      return wanted
    })
    return training.pipe(
      Effect.provideService(RunOptions, { overrides: [], source, name: "play", isStepWanted }),
      Effect.provide(Layer.mergeAll(wasm.layer, store, Recorder.layer(sink))),
      Effect.onExit((exit) => Effect.sync(() => link.send(endOf(exit, directory)))),
      Effect.exit,
      Effect.asVoid,
    )
  })

/** Keeps the folders of steps in memory, because they are removed as soon as the page has received their episodes. */
const episodesInMemory = Layer.effect(
  ObjectStore,
  Effect.gen(function* () {
    const kept = yield* ObjectStore
    const memory = yield* Effect.provide(ObjectStore, ObjectStore.layerMemory)
    const storeOf = (key: string) => (key.includes(`/${Layout.steps}/`) ? memory : kept)
    return ObjectStore.of({
      get: (key) => storeOf(key).get(key),
      put: (key, bytes) => storeOf(key).put(key, bytes),
      remove: (key) => storeOf(key).remove(key),
      list: (prefix) => Effect.map(Effect.all([kept.list(prefix), memory.list(prefix)]), (keys) => keys.flat()),
    })
  }),
)

/** Sends the episodes that the training has played for the page, and removes their folders. */
const showEpisodes = Effect.fnUntraced(function* (link: Link, files: Parameters<Sink>[0]) {
  for (const name of yield* files.list(Layout.steps)) {
    const folder = `${Layout.steps}/${name}`
    const trajectories = yield* files.read(`${folder}/${Layout.inStep.trajectories}`)
    const hasUi = yield* files.exists(Layout.ui.module)
    const ui = hasUi ? yield* files.readText(Layout.ui.module) : undefined
    link.send({ _tag: "Episode", step: Number(name), trajectories, ui })
    yield* files.remove(folder)
  }
})

/** Describes how a training ended. */
const endOf = (
  exit: Exit.Exit<{ readonly digest: string }, { readonly message: string }>,
  directory: string | undefined,
): PlayAnswer => {
  if (Exit.isSuccess(exit)) {
    return { _tag: "Ended", reason: "finished", directory, message: undefined, digest: exit.value.digest }
  }
  if (Cause.hasInterruptsOnly(exit.cause)) {
    return { _tag: "Ended", reason: "stopped", directory, message: undefined, digest: undefined }
  }
  const error = Option.getOrUndefined(Cause.findErrorOption(exit.cause))
  const message = error?.message ?? messageOf(Cause.squash(exit.cause))
  return { _tag: "Ended", reason: "failed", directory, message, digest: undefined }
}
