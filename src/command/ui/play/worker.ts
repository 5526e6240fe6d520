/** Starts the web worker of the page "Play". `bundle-node.ts` makes one script from this file and all its imports. */
import { Effect, Layer } from "effect"
import { layer as layerIndexedDb } from "../../../run/store/objects/indexedDb.ts"
import { ObjectStore } from "../../../run/store/objects/ObjectStore.ts"
import { type Port, serve } from "./serve.ts"

/** The global object of a web worker. */
declare const self: Port

/**
 * Stores trainings in the browser's database. If the browser has none for this page, trainings are kept until the page is
 * closed.
 */
const store = Layer.catch(layerIndexedDb("effect-rl"), ({ message }) => {
  self.postMessage({ _tag: "Refused", message: `this browser does not keep the trainings: ${message}` })
  return ObjectStore.layerMemory
})

Effect.runFork(Effect.scoped(serve(self, store)))
