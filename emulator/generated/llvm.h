// The functions of LLVM that the generator calls, by their names without the prefix: llvm->BuildAdd is LLVMBuildAdd.
//
// The library is loaded when the first kernel is compiled: linking it would add some 25 milliseconds to the start of
// every command, and the program also runs without it.
#pragma once

#include <llvm-c/Analysis.h>
#include <llvm-c/BitWriter.h>
#include <llvm-c/Core.h>
#include <llvm-c/Error.h>
#include <llvm-c/LLJIT.h>
#include <llvm-c/Orc.h>
#include <llvm-c/Support.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <llvm-c/Transforms/PassBuilder.h>

#include <string>

namespace ptxrewrite::emulator::generated {

#define PTXREWRITE_LLVM_FUNCTIONS(FUNCTION)                                                                            \
  FUNCTION(AddAttributeAtIndex)                                                                                        \
  FUNCTION(AddCase)                                                                                                    \
  FUNCTION(AddFunction)                                                                                                \
  FUNCTION(AddIncoming)                                                                                                \
  FUNCTION(AppendBasicBlockInContext)                                                                                  \
  FUNCTION(ArrayType2)                                                                                                 \
  FUNCTION(BuildAShr)                                                                                                  \
  FUNCTION(BuildAdd)                                                                                                   \
  FUNCTION(BuildAlloca)                                                                                                \
  FUNCTION(BuildAnd)                                                                                                   \
  FUNCTION(BuildBitCast)                                                                                               \
  FUNCTION(BuildBr)                                                                                                    \
  FUNCTION(BuildCall2)                                                                                                 \
  FUNCTION(BuildCondBr)                                                                                                \
  FUNCTION(BuildExtractElement)                                                                                        \
  FUNCTION(BuildExtractValue)                                                                                          \
  FUNCTION(BuildFAdd)                                                                                                  \
  FUNCTION(BuildFCmp)                                                                                                  \
  FUNCTION(BuildFreeze)                                                                                                \
  FUNCTION(BuildFDiv)                                                                                                  \
  FUNCTION(BuildFMul)                                                                                                  \
  FUNCTION(BuildFNeg)                                                                                                  \
  FUNCTION(BuildFPExt)                                                                                                 \
  FUNCTION(BuildFPToSI)                                                                                                \
  FUNCTION(BuildFPToUI)                                                                                                \
  FUNCTION(BuildFPTrunc)                                                                                               \
  FUNCTION(BuildFSub)                                                                                                  \
  FUNCTION(BuildGEP2)                                                                                                  \
  FUNCTION(BuildICmp)                                                                                                  \
  FUNCTION(BuildInsertElement)                                                                                         \
  FUNCTION(BuildInsertValue)                                                                                           \
  FUNCTION(BuildIntToPtr)                                                                                              \
  FUNCTION(BuildLShr)                                                                                                  \
  FUNCTION(BuildLoad2)                                                                                                 \
  FUNCTION(BuildMul)                                                                                                   \
  FUNCTION(BuildNot)                                                                                                   \
  FUNCTION(BuildOr)                                                                                                    \
  FUNCTION(BuildPhi)                                                                                                   \
  FUNCTION(BuildPtrToInt)                                                                                              \
  FUNCTION(BuildRet)                                                                                                   \
  FUNCTION(BuildSExt)                                                                                                  \
  FUNCTION(BuildSIToFP)                                                                                                \
  FUNCTION(BuildSelect)                                                                                                \
  FUNCTION(BuildShl)                                                                                                   \
  FUNCTION(BuildShuffleVector)                                                                                         \
  FUNCTION(BuildStore)                                                                                                 \
  FUNCTION(BuildSub)                                                                                                   \
  FUNCTION(BuildSwitch)                                                                                                \
  FUNCTION(BuildTrunc)                                                                                                 \
  FUNCTION(BuildUIToFP)                                                                                                \
  FUNCTION(BuildXor)                                                                                                   \
  FUNCTION(BuildZExt)                                                                                                  \
  FUNCTION(ConstInt)                                                                                                   \
  FUNCTION(ConstNull)                                                                                                  \
  FUNCTION(ConstVector)                                                                                                \
  FUNCTION(ContextCreate)                                                                                              \
  FUNCTION(ContextDispose)                                                                                             \
  FUNCTION(CountParams)                                                                                                \
  FUNCTION(CreateMemoryBufferWithMemoryRangeCopy)                                                                      \
  FUNCTION(CreateBuilderInContext)                                                                                     \
  FUNCTION(CreateEnumAttribute)                                                                                        \
  FUNCTION(CreatePassBuilderOptions)                                                                                   \
  FUNCTION(CreateTargetMachine)                                                                                        \
  FUNCTION(DeleteFunction)                                                                                             \
  FUNCTION(DisposeBuilder)                                                                                             \
  FUNCTION(DisposeErrorMessage)                                                                                        \
  FUNCTION(DisposeMemoryBuffer)                                                                                        \
  FUNCTION(DisposeMessage)                                                                                             \
  FUNCTION(DisposeModule)                                                                                              \
  FUNCTION(DisposePassBuilderOptions)                                                                                  \
  FUNCTION(DoubleTypeInContext)                                                                                        \
  FUNCTION(FloatTypeInContext)                                                                                         \
  FUNCTION(FunctionType)                                                                                               \
  FUNCTION(GetBasicBlockTerminator)                                                                                    \
  FUNCTION(GetBufferSize)                                                                                              \
  FUNCTION(GetBufferStart)                                                                                             \
  FUNCTION(GetDefaultTargetTriple)                                                                                     \
  FUNCTION(GetEnumAttributeKindForName)                                                                                \
  FUNCTION(GetErrorMessage)                                                                                            \
  FUNCTION(GetFirstInstruction)                                                                                        \
  FUNCTION(GetHostCPUFeatures)                                                                                         \
  FUNCTION(GetHostCPUName)                                                                                             \
  FUNCTION(GetInsertBlock)                                                                                             \
  FUNCTION(GetIntrinsicDeclaration)                                                                                    \
  FUNCTION(GetMDKindIDInContext)                                                                                       \
  FUNCTION(GetNextInstruction)                                                                                         \
  FUNCTION(GetParam)                                                                                                   \
  FUNCTION(GetPoison)                                                                                                  \
  FUNCTION(GetTargetFromTriple)                                                                                        \
  FUNCTION(GetUndef)                                                                                                   \
  FUNCTION(GetVersion)                                                                                                 \
  FUNCTION(GlobalGetValueType)                                                                                         \
  FUNCTION(IntTypeInContext)                                                                                           \
  FUNCTION(IntrinsicGetType)                                                                                           \
  FUNCTION(LookupIntrinsicID)                                                                                          \
  FUNCTION(MDNodeInContext2)                                                                                           \
  FUNCTION(MDStringInContext2)                                                                                         \
  FUNCTION(MetadataAsValue)                                                                                            \
  FUNCTION(ModuleCreateWithNameInContext)                                                                              \
  FUNCTION(OrcCreateLLJIT)                                                                                             \
  FUNCTION(OrcCreateLLJITBuilder)                                                                                      \
  FUNCTION(OrcJITDylibCreateResourceTracker)                                                                           \
  FUNCTION(OrcJITTargetMachineBuilderCreateFromTargetMachine)                                                          \
  FUNCTION(OrcLLJITAddObjectFileWithRT)                                                                                \
  FUNCTION(OrcLLJITBuilderSetJITTargetMachineBuilder)                                                                  \
  FUNCTION(OrcLLJITGetDataLayoutStr)                                                                                   \
  FUNCTION(OrcLLJITGetMainJITDylib)                                                                                    \
  FUNCTION(OrcLLJITGetTripleString)                                                                                    \
  FUNCTION(OrcLLJITLookup)                                                                                             \
  FUNCTION(OrcReleaseResourceTracker)                                                                                  \
  FUNCTION(OrcResourceTrackerRemove)                                                                                   \
  FUNCTION(ParseCommandLineOptions)                                                                                    \
  FUNCTION(PointerTypeInContext)                                                                                       \
  FUNCTION(PositionBuilderAtEnd)                                                                                       \
  FUNCTION(RunPasses)                                                                                                  \
  FUNCTION(SetAlignment)                                                                                               \
  FUNCTION(SetDataLayout)                                                                                              \
  FUNCTION(SetLinkage)                                                                                                 \
  FUNCTION(SetMetadata)                                                                                                \
  FUNCTION(SetTarget)                                                                                                  \
  FUNCTION(SetValueName2)                                                                                              \
  FUNCTION(StructTypeInContext)                                                                                        \
  FUNCTION(TargetMachineEmitToMemoryBuffer)                                                                            \
  FUNCTION(TypeOf)                                                                                                     \
  FUNCTION(ValueAsMetadata)                                                                                            \
  FUNCTION(VectorType)                                                                                                 \
  FUNCTION(VerifyFunction)                                                                                             \
  FUNCTION(VoidTypeInContext)                                                                                          \
  FUNCTION(WriteBitcodeToMemoryBuffer)

struct Llvm {
#define FUNCTION(name) decltype(&::LLVM##name) name = nullptr;
  PTXREWRITE_LLVM_FUNCTIONS(FUNCTION)
#undef FUNCTION
};

// Returns nullptr if LLVM is not installed, or is another version; `reason` has the details.
const Llvm* load_llvm(std::string& reason);

} // namespace ptxrewrite::emulator::generated
