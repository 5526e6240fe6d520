import { FormatError } from "../FormatError.ts"

/**
 * Throws the error for a `torch.save` file that cannot be read, or is not safe to read; `offset` is where, if it is
 * known.
 */
export const refuse = (message: string, offset?: number): never => {
  throw new FormatError({ message, ...(offset === undefined ? {} : { offset }) })
}
