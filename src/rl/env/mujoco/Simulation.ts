/**
 * Declares the simulation of a model. It simulates the worlds of all copies of an env one after the other, in the same
 * memory of MuJoCo: `load` returns to a state, `step` goes on from it, and `save` returns the new state. So a thousand
 * copies need the memory of one. `engine.ts` makes it.
 */
/** The sizes and names of a compiled model. `qpos0` and the like are views of MuJoCo's memory. */
export interface MujocoModel {
  /** The numbers of positions, of velocities, of controls and of activations. */
  readonly nq: number
  readonly nv: number
  readonly nu: number
  readonly na: number
  readonly nbody: number
  readonly njnt: number
  readonly ngeom: number
  readonly nsite: number
  readonly nsensordata: number
  readonly opt: { readonly timestep: number }
  readonly qpos0: Float64Array
  readonly body_mass: Float64Array
  readonly body_rootid: Int32Array
  readonly body_invweight0: Float64Array
  readonly body_inertia: Float64Array
  readonly body_pos: Float64Array
  readonly geom_size: Float64Array
  readonly geom_pos: Float64Array
  readonly geom_friction: Float64Array
  readonly geom_rgba: Float32Array
  readonly geom_type: Int32Array
  readonly geom_bodyid: Int32Array
  readonly jnt_range: Float64Array
  readonly dof_damping: Float64Array
  readonly dof_armature: Float64Array
  readonly actuator_gear: Float64Array
  readonly actuator_ctrlrange: Float64Array
}

/** The arrays of a simulation, with MuJoCo's names. All are views of its memory, so read them at once or copy them. */
export interface MujocoArrays {
  readonly qpos: Float64Array
  readonly qvel: Float64Array
  readonly qacc: Float64Array
  readonly ctrl: Float64Array
  readonly act: Float64Array
  readonly qacc_warmstart: Float64Array
  readonly qfrc_actuator: Float64Array
  readonly qfrc_constraint: Float64Array
  readonly qfrc_passive: Float64Array
  readonly qfrc_applied: Float64Array
  readonly xfrc_applied: Float64Array
  readonly actuator_force: Float64Array
  readonly xpos: Float64Array
  readonly xquat: Float64Array
  readonly xmat: Float64Array
  readonly xipos: Float64Array
  readonly geom_xpos: Float64Array
  readonly geom_xmat: Float64Array
  readonly site_xpos: Float64Array
  readonly site_xmat: Float64Array
  readonly subtree_com: Float64Array
  readonly cinert: Float64Array
  readonly cvel: Float64Array
  readonly cfrc_ext: Float64Array
  readonly sensordata: Float64Array
}

/** A model in MuJoCo's format MJCF: its text, and the files that it refers to (meshes, textures, other models). */
export interface Mjcf {
  readonly xml: string
  readonly files?: Readonly<Record<string, Uint8Array>>
  /** The file that the text was read from, for messages. */
  readonly path?: string | undefined
}

/** What the functions of a `Mujoco.env` see: the compiled model, and the arrays of the simulation. */
export interface MujocoWorld {
  readonly model: MujocoModel
  readonly data: MujocoArrays
  /** The simulated time in seconds since the episode began. */
  readonly time: number
  /** Returns the index of a body, joint, geom or site; throws if the model has none of this name. */
  readonly indexOf: (kind: "body" | "joint" | "geom" | "site", name: string) => number
}

/** Sees each step of the simulation while somebody watches. */
export interface SimulationWatch {
  /** Adds the forces of a person to `data.xfrc_applied`. */
  readonly before: () => void
  /** Reads the moment, whose contact forces are computed. The forces of `before` are gone again. */
  readonly after: () => void
}

export interface Simulation {
  readonly world: MujocoWorld
  /** The seconds that a step of the simulation takes. */
  readonly timestep: number
  /** Lists the shapes as they are now, for a picture. */
  readonly scene: () => Float32Array
  /**
   * Lists the contact forces on bodies that touch something, six numbers each: where the force acts, and the force as a
   * multiple of the weight of all bodies.
   */
  readonly forces: () => Float32Array
  /** Returns to the state in which the model begins. */
  readonly restart: () => void
  /** Computes everything that follows from positions and velocities. */
  readonly forward: () => void
  /**
   * Takes steps of the model's own duration, then computes contact forces. If the simulation diverges, returns why: then no
   * number of it has a meaning.
   */
  readonly step: (frames: number, watch?: SimulationWatch) => string | undefined
  /** Returns a copy of the state from which the simulation goes on with the same bits. */
  readonly save: () => Float64Array
  readonly load: (state: Float64Array) => void
  /** Gives the memory of the model and its simulation back. Nothing of this may be used afterwards. */
  readonly free: () => void
}
