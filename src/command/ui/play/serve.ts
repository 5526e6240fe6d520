/** Serves the requests of the page "Play" within its web worker. It keeps trainings in an `ObjectStore`. */
import { Cause, Effect, Fiber, Layer, Queue, Schema, type Scope } from "effect"
import { messageOf } from "../../../base/text/text.ts"
import { utf8 } from "../../../base/text/utf8.ts"
import * as Layout from "../../../run/Layout.ts"
import { foldersIn, ObjectStore, storedRuns } from "../../../run/store/objects/ObjectStore.ts"
import { type PageGame, openGame } from "./game.ts"
import { type Act, type PlayAnswer, type OpenRequest, PlayRequest } from "./messages.ts"
import { type Link, train } from "./train.ts"

/** The worker's end of its connection to the page: the global object of a web worker, or a `MessagePort`. */
export interface Port {
  postMessage(message: PlayAnswer): void
  addEventListener(type: "message", listener: (event: { readonly data: unknown }) => void): void
}

/**
 * Serves requests until it is interrupted. A training runs in its own fiber, so requests never wait for it. Requests that
 * arrive while the store is being opened wait.
 */
export const serve = Effect.fnUntraced(function* (
  port: Port,
  store: Layer.Layer<ObjectStore>,
): Effect.fn.Return<never, Schema.SchemaError, Scope.Scope> {
  const requests = yield* Queue.unbounded<unknown>()
  port.addEventListener("message", ({ data }) => void Queue.offerUnsafe(requests, data))
  const context = yield* Layer.build(store)
  const link: Link = { send: (answer) => port.postMessage(answer), isWatching: false }
  let training: Fiber.Fiber<void> | undefined
  let game: PageGame | undefined
  const answer = Effect.fnUntraced(function* (request: PlayRequest) {
    const isTraining = training !== undefined && training.pollUnsafe() === undefined
    if (request._tag === "Watch") link.isWatching = true
    else if (request._tag === "Stop") yield* training === undefined ? Effect.void : Fiber.interrupt(training)
    else if (request._tag === "List") yield* list(link)
    else if (request._tag === "Act") yield* act(link, game, request)
    else if (request._tag === "Restart") game?.restart()
    else if (isTraining) link.send({ _tag: "Refused", message: "a training is in progress; stop it first" })
    else if (request._tag === "Train") training = yield* Effect.forkScoped(train(link, request))
    else if (request._tag === "Load") yield* load(link, request.directory)
    else if (request._tag === "Open") game = yield* open(link, request)
    else yield* Effect.andThen(remove(request.directory), list(link))
  })
  while (true) {
    const request = yield* Schema.decodeUnknownEffect(PlayRequest)(yield* Queue.take(requests))
    yield* answer(request).pipe(
      // The page must receive an answer even after a bug, because otherwise it would wait for ever.
      Effect.catchCause((cause) =>
        Effect.sync(() => link.send({ _tag: "Refused", message: messageOf(Cause.squash(cause)) })),
      ),
      Effect.provideContext(context),
    )
  }
})

const list = Effect.fnUntraced(function* (link: Link) {
  link.send({ _tag: "Listed", directories: (yield* storedRuns).toReversed() })
})

const load = Effect.fnUntraced(function* (link: Link, directory: string) {
  const bytes = yield* foldersIn(yield* ObjectStore)(directory).read(Layout.config)
  if (bytes === undefined) return link.send({ _tag: "Refused", message: `${directory}: there is no such training` })
  link.send({ _tag: "Loaded", saved: { directory, config: utf8.decode(bytes) } })
})

const open = Effect.fnUntraced(function* (link: Link, request: OpenRequest) {
  const game = yield* openGame(request)
  const { env, policy } = game
  const { body } = env
  const picture = body && { width: body.width, height: body.height }
  const { actionSpace, ui } = env
  link.send({ _tag: "Opened", env: env.id, step: policy.step, actionSpace, ui: body?.ui ?? ui, picture })
  return game
})

const act = Effect.fnUntraced(function* (link: Link, game: PageGame | undefined, { action, pull }: Act) {
  if (game === undefined) return link.send({ _tag: "Refused", message: "there is no game; open one first" })
  link.send({ _tag: "Acted", step: yield* game.step(action, pull ?? undefined) })
})

/**
 * Removes a training. Its config is removed last: as long as the config exists, the training is listed and can be removed
 * again.
 */
const remove = Effect.fnUntraced(function* (directory: string) {
  const folder = foldersIn(yield* ObjectStore)(directory)
  const files = (yield* folder.list).filter((file) => file !== Layout.config)
  yield* Effect.forEach([...files, Layout.config], folder.remove, { discard: true })
})
