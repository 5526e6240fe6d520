/**
 * Defines what a page needs of an env whose bodies are simulated: to show them as smoothly as a screen can, with the
 * moments between two steps, and to let a person pull at them. `Mujoco.env` makes it.
 */

/**
 * A person moves a body in one of two ways: holds a shape at a point of the picture (in the picture's unit, from its top left
 * corner) and pulls it to where the pointer moves, or pushes the whole body to the right and up, from −1 to 1 each.
 */
export type BodyPull =
  | { readonly _tag: "Pointer"; readonly at: readonly [x: number, y: number] }
  | { readonly _tag: "Push"; readonly right: number; readonly up: number }

/** The result of steps, with the moments between them for a page to show. */
interface WatchedSteps<A> {
  readonly result: A
  /** The moments that were simulated, in order; the env's `body.ui` renders them. */
  readonly moments: ReadonlyArray<unknown>
  /** The simulated seconds from one moment to the next. */
  readonly seconds: number
  /** The terms of the last step's reward. */
  readonly terms: Readonly<Record<string, number>>
}

/** It knows nothing of the env's states, so that wrappers keep it as it is. */
export interface EnvBody {
  /** The text of the ES module that renders a moment: see `Ui`. */
  readonly ui: string
  /** The size of the picture, in whose unit a pointer is. */
  readonly width: number
  readonly height: number
  /**
   * Calls a function that takes steps of this env, and keeps their moments. During these steps, `pull` acts on the body; without
   * it, the steps are the same as if nobody watched. Pulls by a pointer hold the same shape until a call has none.
   */
  readonly watch: <A>(pull: BodyPull | undefined, take: () => A) => WatchedSteps<A>
}
