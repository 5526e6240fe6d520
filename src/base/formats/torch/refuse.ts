import { FormatError } from "../FormatError.ts"

/** Refuses a file of `torch.save` that cannot be read, or is not safe to read. `offset` is null if the place is unknown. */
export const refuse = (message: string, offset: number | null = null): never => {
  throw new FormatError({ message, offset })
}
