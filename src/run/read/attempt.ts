import { messageOf } from "../../config/text.ts"

/** Runs a parser, and gives its value or its error in one line. */
export const attempt = <A>(body: () => A): { readonly value: A } | { readonly problem: string } => {
  try {
    return { value: body() }
  } catch (error) {
    // The further lines of a YAML error draw the place of the problem.
    const [first] = (error instanceof Error ? error.message : messageOf(error)).split("\n")
    return { problem: first.replace(/:$/, "") }
  }
}
