/** A claim that takes too long to check in every test run. */
export interface Proof {
  readonly name: string
  readonly claim: string
  /** Checks the claim in this folder and returns what was measured; throws if the claim does not hold. */
  readonly run: (folder: string) => Promise<string>
  /** The part of that folder whose runs are the learning curve in the docs. */
  readonly curve?: string
}

export const must = (holds: boolean, message: string): void => {
  if (!holds) throw new Error(message)
}
