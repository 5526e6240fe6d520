import { messageOf } from "../../config/text.ts"

/** What a parser gave, or its complaint in a line. */
export const attempt = <A>(body: () => A): { readonly value: A } | { readonly problem: string } => {
  try {
    return { value: body() }
  } catch (error) {
    // YAML's messages go on with the place, drawn over several lines.
    const [first] = (error instanceof Error ? error.message : messageOf(error)).split("\n")
    return { problem: first.replace(/:$/, "") }
  }
}
