/** Defines the colours of drawings on light and on dark backgrounds. */
import type { ThemeColours } from "./shapes.ts"

export const light: ThemeColours = {
  paper: "#fbfaf7",
  ink: "#2b2d42",
  faint: "#d9d6cf",
  body: "#3d5a80",
  pole: "#ee6c4d",
  joint: "#f4d35e",
  goal: "#2a9d8f",
  deep: "#efece3",
  stone: "#4a4e69",
  muted: "#77758a",
  act: "#d9820f",
}

export const dark: ThemeColours = {
  paper: "#181a25",
  ink: "#ecebf3",
  faint: "#363b50",
  body: "#7c9fd3",
  pole: "#ff8b6a",
  joint: "#f7d96b",
  goal: "#41c5b3",
  deep: "#10121a",
  stone: "#4b5270",
  muted: "#9499b0",
  act: "#ffbf47",
}
