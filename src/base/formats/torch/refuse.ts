import { FormatError } from "../FormatError.ts"

/** Refuses a file of `torch.save` that cannot be read, or is not safe to read, at an offset if the place is known. */
export const refuse = (message: string, offset?: number): never => {
  throw new FormatError({ message, ...(offset === undefined ? {} : { offset }) })
}
