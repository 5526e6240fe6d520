/** Something that is too long to be shown in every test run. */
export interface Proof {
  readonly name: string
  readonly claim: string
  /** What was seen; throws where the claim does not hold. */
  readonly run: (folder: string) => Promise<string>
}

export const must = (holds: boolean, message: string): void => {
  if (!holds) throw new Error(message)
}
