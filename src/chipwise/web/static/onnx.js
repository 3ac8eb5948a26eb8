// The totals of an ONNX graph (onnx/onnx, onnx.proto: numbers of fields) as the model that they make: parameters, and of
// products and convolutions the multiply-adds and results, by the shapes that the file states. The file stays here.
const onnxTotals = (() => {
  "use strict";
  const OPEN = 128;  // what a size is taken for that a graph leaves open; 1 where it is the first, as chipwise trace does
  const WHOLE = new Set([1, 10, 11, 16]);  // float32, float16, float64, bfloat16
  const letters = new TextDecoder();

  // the fields of a message: number and value, of what has a length its bytes
  function* fieldsOf(bytes) {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    let at = 0;
    function integer() {
      let value = 0n;
      for (let shift = 0n; shift < 70n; shift += 7n) {
        const byte = view.getUint8(at++);
        value |= BigInt(byte & 127) << shift;
        if (byte < 128) return Number(BigInt.asIntN(64, value));
      }
      throw new RangeError("no number");
    }
    while (at < bytes.byteLength) {
      const key = integer(), kind = key & 7;
      if (kind === 0) yield [key >>> 3, integer()];
      else if (kind === 2) {
        const long = integer();
        if (long < 0 || at + long > bytes.byteLength) throw new RangeError("cut off");
        yield [key >>> 3, bytes.subarray(at, at + long)];
        at += long;
      } else if (kind === 1) at += 8;
      else if (kind === 5) at += 4;
      else throw new RangeError("no message");
    }
  }
  const allOf = (bytes, field) => [...fieldsOf(bytes)].filter(([number]) => number === field).map(([, value]) => value);
  const textOf = (bytes, field) => letters.decode(allOf(bytes, field)[0] ?? new Uint8Array());
  const product = (sizes) => sizes.reduce((all, one) => all * one, 1);

  // a tensor of the file: its name, its sizes, and whether it is a weight
  function tensor(bytes) {
    const sizes = [];
    let type = 0, name = "";
    for (const [number, value] of fieldsOf(bytes)) {
      if (number === 1) sizes.push(...(typeof value === "number" ? [value] : packed(value)));
      else if (number === 2) type = value;
      else if (number === 8) name = letters.decode(value);
    }
    return { name, sizes, weight: WHOLE.has(type) };
  }
  function packed(bytes) {
    const found = [];
    let value = 0, by = 1;
    for (const byte of bytes) {
      value += (byte & 127) * by;
      by *= 128;
      if (byte < 128) { found.push(value); value = 0; by = 1; }
    }
    return found;
  }
  // the sizes that a value states, null where it states none
  function stated(bytes) {
    const shape = [2, 1, 2].reduce((within, field) => within && allOf(within, field)[0], bytes);
    if (!shape) return null;
    return allOf(shape, 1).map((size, at) => {
      const said = allOf(size, 1)[0];
      return said > 0 ? said : at ? OPEN : 1;
    });
  }

  const MACS = {
    Conv: (inputs, out) => product(out) * product(inputs[1].slice(1)),
    ConvTranspose: (inputs) => product(inputs[0]) * product(inputs[1].slice(1)),
    MatMul: (inputs, out) => product(out) * inputs[0].at(-1),
    Gemm: (inputs, out) => product(out) * product(inputs[1]) / out.at(-1),
  };
  const WITHIN = "If Loop Scan LSTM GRU RNN Attention MultiHeadAttention GroupQueryAttention".split(" ");

  return function totals(bytes, name) {
    const instead = `run chipwise trace ${name} on your machine`;
    let graph, functions;
    try {
      graph = allOf(bytes, 7)[0];
      functions = allOf(bytes, 25).length;
      if (!(graph instanceof Uint8Array) || !allOf(graph, 1).length) throw new RangeError("no graph");
      const shapes = new Map();
      let params = 0, macs = 0, convolved = 0, results = 0;
      for (const value of [...allOf(graph, 11), ...allOf(graph, 12), ...allOf(graph, 13)]) shapes.set(textOf(value, 1), stated(value));
      for (const bytesOf of allOf(graph, 5)) {
        const found = tensor(bytesOf);
        shapes.set(found.name, found.sizes);
        if (found.weight) params += product(found.sizes);
      }
      for (const node of allOf(graph, 1)) {
        const kind = textOf(node, 4);
        if (functions || WITHIN.includes(kind)) throw new TypeError(`${functions ? "functions" : kind} of an ONNX graph are not read on this page: ${instead}`);
        if (!MACS[kind]) continue;
        const inputs = allOf(node, 1).map((input) => shapes.get(letters.decode(input))), out = shapes.get(textOf(node, 2));
        if (!out || !inputs[0] || !inputs[1]) throw new TypeError(`this ONNX file does not state the shapes of its ${kind} operators: run onnx.shape_inference.infer_shapes on it first, or ${instead}`);
        const work = MACS[kind](inputs, out);
        macs += work;
        results += product(out);
        if (kind.startsWith("Conv")) convolved += work;
      }
      if (!params || !macs) throw new TypeError(`no products with weights stand in this ONNX file: ${instead}`);
      const millions = `${Number((results / 1e6).toPrecision(6))}M`;
      return `macs:params=${params},gmacs=${Number((macs / 1e9).toPrecision(6))},macts=${millions},style=${convolved > macs / 2 ? "conv" : "transformer"}`;
    } catch (error) {
      throw error instanceof TypeError ? error : new Error("this ONNX file is cut off or damaged");
    }
  };
})();
