/* One half of collect_xray.o: where patched sleds go. Each saves what the function and its caller
 * may not lose, hands it to the agent's handler, which keeps all vector registers as they are, and
 * puts it back. Which sled calls and which jumps here, and with what, is in agent/ring/sleds/sleds.cc.
 *
 * The handlers are in collect_xray_this_module at HANDLERS (xray_module.h).
 */
#define HANDLERS 56

#if defined(__x86_64__)

/* r10d: the function's distance from collect_xray_enter. The registers are pushed so that the
 * first six arguments are in their order; r11 and rax may hold the target of a tail call. */
	.macro CALLED_FROM_SLED name, handler
	.globl \name
	.hidden \name
	.type \name, @function
	.p2align 4
\name:
	.cfi_startproc
	pushq %r11
	.cfi_adjust_cfa_offset 8
	pushq %rax
	.cfi_adjust_cfa_offset 8
	pushq %r9
	.cfi_adjust_cfa_offset 8
	pushq %r8
	.cfi_adjust_cfa_offset 8
	pushq %rcx
	.cfi_adjust_cfa_offset 8
	pushq %rdx
	.cfi_adjust_cfa_offset 8
	pushq %rsi
	.cfi_adjust_cfa_offset 8
	pushq %rdi
	.cfi_adjust_cfa_offset 8
	movslq %r10d, %rdi
	leaq collect_xray_enter(%rip), %rax
	addq %rax, %rdi
	movq %rsp, %rsi
	movq %rbp, %rdx
	callq *(collect_xray_this_module + HANDLERS + 8 * \handler)(%rip)
	popq %rdi
	.cfi_adjust_cfa_offset -8
	popq %rsi
	.cfi_adjust_cfa_offset -8
	popq %rdx
	.cfi_adjust_cfa_offset -8
	popq %rcx
	.cfi_adjust_cfa_offset -8
	popq %r8
	.cfi_adjust_cfa_offset -8
	popq %r9
	.cfi_adjust_cfa_offset -8
	popq %rax
	.cfi_adjust_cfa_offset -8
	popq %r11
	.cfi_adjust_cfa_offset -8
	retq
	.cfi_endproc
	.size \name, . - \name
	.endm

	.text
	CALLED_FROM_SLED collect_xray_enter, 0
	CALLED_FROM_SLED collect_xray_tail, 2

/* The sled is where the function's ret was: this returns to the caller. Some languages return
 * three words, in rax, rdx and rcx. */
	.globl collect_xray_exit
	.hidden collect_xray_exit
	.type collect_xray_exit, @function
	.p2align 4
collect_xray_exit:
	.cfi_startproc
	pushq %rcx
	.cfi_adjust_cfa_offset 8
	pushq %rdx
	.cfi_adjust_cfa_offset 8
	pushq %rax
	.cfi_adjust_cfa_offset 8
	movslq %r10d, %rdi
	leaq collect_xray_enter(%rip), %rax
	addq %rax, %rdi
	movq %rsp, %rsi
	movq %rbp, %rdx
	callq *(collect_xray_this_module + HANDLERS + 8)(%rip)
	popq %rax
	.cfi_adjust_cfa_offset -8
	popq %rdx
	.cfi_adjust_cfa_offset -8
	popq %rcx
	.cfi_adjust_cfa_offset -8
	retq
	.cfi_endproc
	.size collect_xray_exit, . - collect_xray_exit

#elif defined(__aarch64__)

/* w17: the function's distance from collect_xray_enter; x30: back into the sled, which has put the
 * function's own x30 and x17 on the stack and takes them back. Any register up to x17 may hold the
 * target of a tail call.
 *
 * To an unwinder this is a frame that was called where the function was: of the two return addresses
 * the function's is the one that leads on. */
	.macro CALLED_FROM_SLED name, handler
	.globl \name
	.hidden \name
	.type \name, %function
	.p2align 4
\name:
	.cfi_startproc
	.cfi_def_cfa sp, 16
	.cfi_offset x30, -16
	hint #34 /* bti c */
	stp x0, x1, [sp, #-160]!
	.cfi_def_cfa sp, 176
	stp x2, x3, [sp, #16]
	stp x4, x5, [sp, #32]
	stp x6, x7, [sp, #48]
	stp x8, x9, [sp, #64]
	stp x10, x11, [sp, #80]
	stp x12, x13, [sp, #96]
	stp x14, x15, [sp, #112]
	stp x16, x30, [sp, #128]
	str x18, [sp, #144]
	adrp x0, collect_xray_enter
	add x0, x0, :lo12:collect_xray_enter
	add x0, x0, w17, sxtw
	mov x1, sp
	mov x2, x29
	adrp x16, collect_xray_this_module + HANDLERS + 8 * \handler
	ldr x16, [x16, :lo12:collect_xray_this_module + HANDLERS + 8 * \handler]
	blr x16
	ldr x18, [sp, #144]
	ldp x16, x30, [sp, #128]
	ldp x14, x15, [sp, #112]
	ldp x12, x13, [sp, #96]
	ldp x10, x11, [sp, #80]
	ldp x8, x9, [sp, #64]
	ldp x6, x7, [sp, #48]
	ldp x4, x5, [sp, #32]
	ldp x2, x3, [sp, #16]
	ldp x0, x1, [sp], #160
	.cfi_def_cfa sp, 16
	ret
	.cfi_endproc
	.size \name, . - \name
	.endm

	.text
	CALLED_FROM_SLED collect_xray_enter, 0
	CALLED_FROM_SLED collect_xray_exit, 1
	CALLED_FROM_SLED collect_xray_tail, 2

#else
#error "no XRay trampolines for this architecture"
#endif

	.section .note.GNU-stack, "", %progbits
