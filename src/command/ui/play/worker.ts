/** Starts the web worker of the page "Play". `bundle-node.ts` makes one script from this file and all its imports. */
import { Effect, Layer, Predicate } from "effect"
import { mujocoInstall, MujocoPackage } from "../../../rl/env/mujoco/engine.ts"
import { layer as layerIndexedDb } from "../../../run/store/objects/indexedDb.ts"
import { ObjectStore } from "../../../run/store/objects/ObjectStore.ts"
import { mujocoScript } from "./mujoco.ts"
import { type Port, serve } from "./serve.ts"

/** The global object of a web worker. */
declare const self: Port & { readonly location: { readonly href: string } }

/**
 * Stores trainings in the browser's database. If the browser has none for this page, trainings are kept until the page is
 * closed.
 */
const store = Layer.catch(layerIndexedDb("effect-rl"), ({ message }) => {
  self.postMessage({ _tag: "Refused", message: `this browser does not keep the trainings: ${message}` })
  return ObjectStore.layerMemory
})

/** MuJoCo's module, which the page's server has if the package is installed there. */
const mujoco = async () => {
  const imported: unknown = await import(new URL(mujocoScript, self.location.href).href).catch(() => undefined)
  if (!Predicate.hasProperty(imported, "default") || !Predicate.isFunction(imported.default))
    throw new Error(
      `this page comes without it; run \`${mujocoInstall}\` where \`effect ui\` runs, then start or export it again`,
    )
  const { default: start } = imported
  return async (options: object): Promise<unknown> => start(options)
}

Effect.runFork(Effect.scoped(serve(self, store)).pipe(Effect.provideService(MujocoPackage, mujoco)))
