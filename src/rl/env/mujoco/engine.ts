/**
 * Loads MuJoCo's own WebAssembly bindings, the package `@mujoco/mujoco`, when the first env needs them: once in each
 * thread. The package is an optional peer, so none of its types is in the types of our own.
 */
import type { MainModule, MjData, MjModel } from "@mujoco/mujoco"
import { Context, Effect, Predicate } from "effect"
import { messageOf, oneLine } from "../../../base/text/text.ts"
import { invalid } from "../../../base/EnvError.ts"
import { checkLimits } from "./limits.ts"
import { forcesOf, scenesOf } from "./scenes.ts"
import { statesOf } from "./states.ts"
import type { Mjcf, MujocoArrays, MujocoWorld, Simulation } from "./Simulation.ts"

/** The name of the package. Bundlers must not follow it: few pages and programs have the package. */
const name = "@mujoco/mujoco"

const importMujoco = (): Promise<typeof import("@mujoco/mujoco")> =>
  import(/* webpackIgnore: true */ /* @vite-ignore */ name)

/** Starts MuJoCo's module with options of Emscripten's. */
type ModuleStart = (options: object) => PromiseLike<unknown>

/**
 * Imports what starts MuJoCo's module. By default it is the package; a program that has its files elsewhere, such as the web
 * worker of the page "Play", provides this instead.
 */
export const MujocoPackage = Context.Reference<() => Promise<ModuleStart>>("effect-rl/env/MujocoPackage", {
  defaultValue: () => () => importMujoco().then(({ default: start }) => start),
})

let loaded: Promise<MainModule> | undefined

const expectedVersion = "3.14"

/** The command that adds the package. */
export const mujocoInstall = `npm install ${name}@${expectedVersion}.0`

const missing = `MuJoCo's package is not installed; run \`${mujocoInstall}\`. Nothing else is needed, no Python.`

const isEngine = (value: unknown): value is MainModule =>
  Predicate.hasProperty(value, "MjModel") &&
  Predicate.hasProperty(value, "mj_setState") &&
  Predicate.hasProperty(value, "mj_rnePostConstraint")

const started = async (start: ModuleStart): Promise<MainModule> => {
  // Warnings, such as that a simulation diverged, are found in the results; MuJoCo would also print them.
  const engine = await start({ print: () => {}, printErr: () => {} })
  const hasVersion = Predicate.hasProperty(engine, "mj_versionString")
  const version = hasVersion && Predicate.isFunction(engine.mj_versionString) ? engine.mj_versionString() : undefined
  const found = typeof version === "string" ? version : "an unknown version"
  if (isEngine(engine) && found.startsWith(`${expectedVersion}.`)) return engine
  throw new Error(`expected MuJoCo ${expectedVersion}, found ${found}; run \`${mujocoInstall}\``)
}

/** Loads the package on the first call of this thread. The result compiles models. */
export const loadMujoco = Effect.fnUntraced(function* (env: string) {
  const read = yield* MujocoPackage
  const engine = yield* Effect.tryPromise({
    try: () => (loaded ??= read().then(started)),
    catch: (error) => {
      loaded = undefined
      const text = messageOf(error)
      const isMissing = /@mujoco\/mujoco/.test(text) && /find|resolve|specifier/i.test(text)
      return invalid(env, isMissing ? missing : `MuJoCo could not be loaded: ${oneLine(text)}`)
    },
  })
  return (model: Mjcf): Simulation => compile(env, engine, model)
})

/** Compiles a model. A wrong one throws an `EnvError` with MuJoCo's message, which names the line. */
const compile = (id: string, engine: MainModule, { xml, files = {}, path }: Mjcf): Simulation => {
  checkLimits(id, { xml, files, path })
  const vfs = new engine.MjVFS()
  let model: MjModel | undefined
  let data: MjData | undefined
  try {
    for (const [name, content] of Object.entries(files)) vfs.addBuffer(name, content)
    model = engine.MjModel.from_xml_string(xml, vfs)
    checkSizes(model)
    data = new engine.MjData(model)
    return of(id, engine, model, data)
  } catch (error) {
    const version = engine.mj_versionString()
    // After a crash the module's memory cannot be trusted: the next env starts another module.
    if (error instanceof Error && error.name === "RuntimeError") loaded = undefined
    else [data, model].forEach((one) => one?.delete())
    throw invalid(id, `${path ?? "model"}: ${problemOf(error)} (MuJoCo ${version})`)
  } finally {
    vfs.delete()
  }
}

/** Says why a model could not be compiled or simulated. */
const problemOf = (error: unknown): string => {
  const text = oneLine(messageOf(error))
  return /bad_alloc|allocate|length_error|^vector$/.test(text)
    ? `it does not fit into MuJoCo's memory, which has 2 GB in each thread for all models; use a smaller model, or fewer at once (${text})`
    : text
}

/** The most numbers that the state of a simulation may have. */
const mostNumbers = 1_000_000

const checkSizes = ({ nq, nv, nbody, nuserdata, nsensordata }: MjModel): void => {
  const numbers = nq + 3 * nv + 6 * nbody + nuserdata + nsensordata
  if (numbers > mostNumbers)
    throw new Error(`its state has ${numbers} numbers (${nbody} bodies); expected at most ${mostNumbers}`)
}

const of = (id: string, engine: MainModule, model: MjModel, data: MjData): Simulation => {
  const world = worldOf(id, engine, model, data)
  // A simulation that diverges would return to its start, and go on as if nothing had happened.
  model.opt.disableflags |= engine.mjtDisableBit.mjDSBL_AUTORESET.value
  const { save, load, free } = statesOf({ id, engine, model, data, world })
  return {
    world,
    timestep: model.opt.timestep,
    scene: scenesOf(world),
    forces: forcesOf(world),
    restart: () => engine.mj_resetData(model, data),
    forward: () => engine.mj_forward(model, data),
    step: (frames, watch) => {
      for (let frame = 0; frame < frames; frame++) {
        const own = watch && world.data.xfrc_applied.slice()
        watch?.before()
        engine.mj_step(model, data)
        const { qpos, qvel, qacc } = world.data
        if (!(isSound(qacc) && isSound(qvel) && isSound(qpos))) return diverged(engine, model, data)
        if (watch === undefined || own === undefined) continue
        // The force of a person is removed, so that no state and no contact force has it; the env's own forces remain.
        world.data.xfrc_applied.set(own)
        engine.mj_rnePostConstraint(model, data)
        watch.after()
      }
      if (watch === undefined) engine.mj_rnePostConstraint(model, data)
      return undefined
    },
    save,
    load,
    free: () => {
      free()
      data.delete()
      model.delete()
    },
  }
}

const worldOf = (id: string, engine: MainModule, model: MjModel, data: MjData): MujocoWorld => {
  const kinds = {
    body: engine.mjtObj.mjOBJ_BODY.value,
    joint: engine.mjtObj.mjOBJ_JOINT.value,
    geom: engine.mjtObj.mjOBJ_GEOM.value,
    site: engine.mjtObj.mjOBJ_SITE.value,
  }
  let arrays = viewsOf(data)
  // Envs look names up in each step, and each look-up in MuJoCo passes a text to it.
  const known = new Map<string, number>()
  return {
    model,
    get data() {
      // When MuJoCo's memory grows, older views of it become empty.
      return arrays.qpos.buffer.byteLength > 0 ? arrays : (arrays = viewsOf(data))
    },
    get time() {
      return data.time
    },
    indexOf: (kind, name) => {
      const key = `${kind} ${name}`
      const index = known.get(key) ?? engine.mj_name2id(model, kinds[kind], name)
      known.set(key, index)
      if (index < 0) throw invalid(id, `the model has no ${kind} "${name}"`)
      return index
    },
  }
}

/** The largest position or velocity. MuJoCo calls larger ones bad as well. */
const largest = 1e10

const isSound = (values: Float64Array): boolean => {
  for (let at = 0; at < values.length; at++) if (!(Math.abs(values[at]) <= largest)) return false
  return true
}

/** Says which of its warnings MuJoCo gave when a simulation diverged, and begins the simulation anew. */
const diverged = (engine: MainModule, model: MjModel, data: MjData): string => {
  const { mjWARN_BADQPOS, mjWARN_BADQVEL, mjWARN_BADQACC } = engine.mjtWarning
  const kinds = { mjWARN_BADQACC, mjWARN_BADQVEL, mjWARN_BADQPOS }
  const { warning } = data
  const given = Object.entries(kinds).filter(([, { value }]) => (warning.get(value)?.number ?? 0) > 0)
  const which = given.length === 0 ? `a number above ${largest}` : given.map(([name]) => name).join(", ")
  const { time } = data
  // MuJoCo's warnings and arrays must not reach into the next episode.
  engine.mj_resetData(model, data)
  return `the simulation diverged at ${time} s: ${which}`
}

/** Looks up the views once, since each look at an array of `data` makes a new view of it. */
const viewsOf = (data: MjData): MujocoArrays => ({
  qpos: data.qpos,
  qvel: data.qvel,
  qacc: data.qacc,
  ctrl: data.ctrl,
  act: data.act,
  qacc_warmstart: data.qacc_warmstart,
  qfrc_actuator: data.qfrc_actuator,
  qfrc_constraint: data.qfrc_constraint,
  qfrc_passive: data.qfrc_passive,
  qfrc_applied: data.qfrc_applied,
  xfrc_applied: data.xfrc_applied,
  actuator_force: data.actuator_force,
  xpos: data.xpos,
  xquat: data.xquat,
  xmat: data.xmat,
  xipos: data.xipos,
  geom_xpos: data.geom_xpos,
  geom_xmat: data.geom_xmat,
  site_xpos: data.site_xpos,
  site_xmat: data.site_xmat,
  subtree_com: data.subtree_com,
  cinert: data.cinert,
  cvel: data.cvel,
  cfrc_ext: data.cfrc_ext,
  sensordata: data.sensordata,
})
