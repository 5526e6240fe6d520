/**
 * Turns the drawing of an env into the pictures that an env can have: `renderText` for terminals, `renderSvg` for documents,
 * videos and GIFs, and `ui`, the text of the module that renders episodes on a canvas in the browser (see `Ui`).
 */
import { documentOf } from "./svg.ts"
import { moduleOf } from "./canvas.ts"
import { brushOf, type EnvDrawing, type StageShape, stageOf } from "./shapes.ts"
import { light } from "./palettes.ts"
import { textOf } from "./text.ts"

/** Returns the pictures of an env whose states are numbers. `values` are the env's own values, which its drawing uses. */
export const picturesOf = <Values extends object>(id: string, drawing: EnvDrawing<Values>, values: Values) => {
  const { renderText, renderSvg, ui } = picturesOfStates(id, drawing, values)
  return {
    renderText: (state: Iterable<number>): string => renderText([...state]),
    renderSvg: (state: Iterable<number>): string => renderSvg([...state]),
    ui,
  }
}

/** Returns the pictures of an env whose states are of another type. */
export const picturesOfStates = <Values extends object, State>(
  id: string,
  drawing: EnvDrawing<Values, State>,
  values: Values,
) => {
  const whole = { ...drawing, ...values }
  const shapesOf = (state: State): ReadonlyArray<StageShape> => {
    const { width, height } = drawing
    const frame = { left: 0, top: 0, right: width, bottom: height, colours: light, dark: false, trail: [] }
    const stage = stageOf(frame, brushOf(frame))
    drawing.draw(stage, state, [], whole)
    return stage.shapes
  }
  return {
    renderText: (state: State): string => textOf(shapesOf(state), drawing.terminal),
    renderSvg: (state: State): string => documentOf(id, drawing, shapesOf(state)),
    ui: moduleOf(id, whole),
  }
}
