/**
 * Saves and loads the numbers from which a simulation goes on. MuJoCo's own functions for this convert each number, which takes
 * as long as a tenth of a small body's step; so where the numbers are those of arrays that we can see, they are copied.
 */
import type { MainModule, MjData, MjModel } from "@mujoco/mujoco"
import { invalid } from "../../../base/EnvError.ts"
import type { MujocoWorld, Simulation } from "./Simulation.ts"

/** The package's types ask for a list, but it takes any array. */
interface StateSetter {
  mj_setState(model: MjModel, data: MjData, state: ArrayLike<number>, parts: number): void
}

/** The compiled model, its simulation, and views of both. */
interface Compiled {
  /** The name of the env, for messages. */
  readonly id: string
  readonly engine: MainModule
  readonly model: MjModel
  readonly data: MjData
  readonly world: MujocoWorld
}

type States = Pick<Simulation, "save" | "load">

/** Returns the functions that save and load, and frees what they used with `free`. */
export const statesOf = (compiled: Compiled): States & { readonly free: () => void } => {
  const { id, engine, model, data } = compiled
  const all = engine.mjtState.mjSTATE_INTEGRATION.value
  const size = engine.mj_stateSize(model, all)
  const buffer = new engine.DoubleBuffer(size)
  const setter: StateSetter = engine
  const whole: States = {
    save: () => {
      engine.mj_getState(model, data, buffer, all)
      return buffer.GetView().slice()
    },
    load: (state) => setter.mj_setState(model, data, state, all),
  }
  const parts = partsOf(compiled, size)
  // Numbers that tell their places show whether both ways agree on them. A model with more than these arrays uses MuJoCo's.
  const places = Float64Array.from({ length: size }, (_, at) => at)
  whole.load(places)
  const agree = parts.save().every((value, at) => value === at) && parts.save().length === size
  engine.mj_resetData(model, data)
  const { save, load } = agree ? parts : whole
  return {
    save,
    load: (state) => {
      if (state.length === size) return load(state)
      const found = `the state has ${state.length} numbers, those of this model have ${size}`
      throw invalid(
        id,
        `${found}; a state, such as one in a checkpoint, continues only with the model that it comes from`,
      )
    },
    free: () => buffer.delete(),
  }
}

/** Copies the arrays that the state of most models consists of, in MuJoCo's order. */
const partsOf = ({ data, world }: Compiled, size: number): States => {
  const arrays = () => {
    const { qpos, qvel, act, qacc_warmstart, ctrl, qfrc_applied, xfrc_applied } = world.data
    return [qpos, qvel, act, qacc_warmstart, ctrl, qfrc_applied, xfrc_applied]
  }
  return {
    save: () => {
      const state = new Float64Array(size)
      state[0] = data.time
      let at = 1
      for (const array of arrays()) {
        if (at + array.length > size) break
        state.set(array, at)
        at += array.length
      }
      return state
    },
    load: (state) => {
      data.time = state[0]
      let at = 1
      for (const array of arrays()) {
        array.set(state.subarray(at, at + array.length))
        at += array.length
      }
    },
  }
}
