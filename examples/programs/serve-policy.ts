// Serves the policy of a run over HTTP, without its env and its training.
//   npx effect run examples/cartpole.ts
//   node_modules/.bin/node examples/programs/serve-policy.ts results/…/0001
//   curl http://localhost:8080/act -d '{"observation":[0.01,0.2,-0.03,0.1]}'      {"action":1}
import { createServer } from "node:http"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { Effect, Layer, Schema } from "effect"
import * as HttpRouter from "effect/http/HttpRouter"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import { Policy } from "effect-rl"
import * as Node from "effect-rl/node"

const Numbers = Schema.Array(Schema.Finite)
const Body = Schema.Struct({ observation: Numbers, state: Schema.optionalKey(Numbers) })

const wrongBody = {
  message: 'body: expected JSON such as {"observation":[0.01,0.2]}, with "state" for a recurrent policy',
}

/** Answers an observation with an action. The client of a recurrent policy sends the last answer's state back. */
export const routes = (run: string) =>
  Effect.gen(function* () {
    const policy = yield* Policy.load(run)
    const act = Effect.gen(function* () {
      const { observation, state } = yield* Effect.mapError(HttpServerRequest.schemaBodyJson(Body), () => wrongBody)
      return HttpServerResponse.jsonUnsafe(yield* policy.act(observation, state))
    })
    const refuse = ({ message }: { readonly message: string }) =>
      Effect.succeed(HttpServerResponse.jsonUnsafe({ error: message }, { status: 400 }))
    return HttpRouter.add("POST", "/act", Effect.catch(act, refuse))
  }).pipe(Layer.unwrap, Layer.provide(Layer.merge(Node.backend("wasm"), Node.platform)))

if (process.argv[1] === import.meta.filename) {
  const server = HttpRouter.serve(routes(process.argv[2] ?? "")).pipe(
    Layer.provide(NodeHttpServer.layer(createServer, { port: 8080 })),
  )
  NodeRuntime.runMain(Layer.launch(server))
}
