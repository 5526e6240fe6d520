/** The worker of the page "Play" in Node: over a channel instead of a web worker's own, and in memory. */
import { MessageChannel } from "node:worker_threads"
import { Effect, Exit, type Layer, Scope } from "effect"
import type { PlayAnswer, PlayRequest } from "../../../../src/command/ui/play/messages.ts"
import { type Port, serve } from "../../../../src/command/ui/play/serve.ts"
import { ObjectStore } from "../../../../src/run/store/objects/ObjectStore.ts"

interface Worker {
  readonly send: (request: PlayRequest) => void
  /** Waits for the next answer of a kind; answers of other kinds before it are dropped. */
  readonly next: <Tag extends PlayAnswer["_tag"]>(tag: Tag) => Promise<Extract<PlayAnswer, { readonly _tag: Tag }>>
}

export const withWorker = async (
  body: (worker: Worker) => Promise<void>,
  store: Layer.Layer<ObjectStore> = ObjectStore.layerMemory,
): Promise<void> => {
  const { port1, port2 } = new MessageChannel()
  const scope = await Effect.runPromise(Scope.make())
  const port: Port = {
    postMessage: (answer) => port1.postMessage(answer),
    addEventListener: (_, listener) => void port1.on("message", (data) => listener({ data })),
  }
  Effect.runFork(serve(port, store).pipe(Scope.provide(scope)))
  const answers: Array<PlayAnswer> = []
  let wake = (): void => {}
  port2.on("message", (answer: PlayAnswer) => {
    answers.push(answer)
    wake()
  })
  const isOf =
    <Tag extends PlayAnswer["_tag"]>(tag: Tag) =>
    (answer: PlayAnswer): answer is Extract<PlayAnswer, { readonly _tag: Tag }> =>
      answer._tag === tag
  try {
    await body({
      send: (request) => port2.postMessage(request),
      next: async (tag) => {
        for (;;) {
          const answer = answers.shift()
          if (answer === undefined) await new Promise<void>((resolve) => (wake = resolve))
          else if (isOf(tag)(answer)) return answer
        }
      },
    })
  } finally {
    await Effect.runPromise(Scope.close(scope, Exit.void))
    port1.close()
  }
}
